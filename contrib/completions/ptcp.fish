# Completion of ptcp for fish. Commands and options are read from ptcp help.

function __ptcp_commands
    ptcp help 2>/dev/null | sed -n 's/^  \([a-z]*\)  *\(.*\)/\1\t\2/p'
end

function __ptcp_options
    set -l words (commandline -opc)
    ptcp help $words[2] 2>/dev/null | sed -n 's/^  [ -][^-]*\(--[a-z0-9-]*\)\( [^ ]\{1,\}\)\{0,1\}\(  *\(.*\)\)\{0,1\}$/\1\t\4/p'
end

function __ptcp_hosts
    set -l base $XDG_CONFIG_HOME
    test -n "$base"; or set base ~/.config
    sed -n 's/^\([^# ]*\) .*/\1/p' $base/ptcp/known_hosts 2>/dev/null
end

function __ptcp_running
    ptcp status -q 2>/dev/null | sed 's/  .*//'
end

complete -c ptcp -n '__fish_is_first_token' -f -a '(__ptcp_commands)'
complete -c ptcp -n 'not __fish_is_first_token; and string match -q -- "-*" (commandline -ct)' -a '(__ptcp_options)'
complete -c ptcp -n '__fish_seen_subcommand_from help' -f -a '(__ptcp_commands)'
complete -c ptcp -n '__fish_seen_subcommand_from key' -f -a 'show generate list install authorize revoke sign'
complete -c ptcp -n '__fish_seen_subcommand_from overlay' -f -a 'make (__ptcp_hosts)'
complete -c ptcp -n '__fish_seen_subcommand_from rate' -f -a '(__ptcp_running)'
complete -c ptcp -n '__fish_seen_subcommand_from status' -f -a '(__ptcp_running) (__ptcp_hosts)'
complete -c ptcp -n '__fish_seen_subcommand_from advise measure doctor' -f -a '(__ptcp_hosts)'
complete -c ptcp -n '__fish_seen_subcommand_from send recv ls du mkdir rm mv' -a '(__ptcp_hosts | string replace -r "(.*)" "ptcp://\$1/")'
