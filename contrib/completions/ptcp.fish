# Completion of ptcp for fish.

# COMMAND~OPTION~LETTER~VALUE~HELP (contrib/completions/table.c)
set -g __ptcp_table '
@TABLE@
'

function __ptcp_commands
    for row in (string match -- '*~~~~*' (string split \n -- $__ptcp_table))
        string replace '~~~~' \t -- $row
    end
end

function __ptcp_lacks_command
    test (count (commandline -opc)) -eq 1
end

# Whether the command is one of these.
function __ptcp_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end

# Known servers.
function __ptcp_hosts
    set -l base $XDG_CONFIG_HOME
    test -n "$base"; or set base ~/.config
    sed -n 's/^\([^# ]*\) .*/\1/p' $base/ptcp/known_hosts 2>/dev/null
end

# Names that the settings of ssh mention, but patterns.
function __ptcp_ssh_hosts
    sed -n 's/^[[:space:]]*[Hh]ost[ =]\{1,\}//p' ~/.ssh/config 2>/dev/null | tr -s ' ' '\n' | string match -v -r '[*?!]'
end

function __ptcp_running
    ptcp status -q 2>/dev/null | sed 's/  .*//'
end

# The words of a value such as "N|auto", and names where the value is a host.
function __ptcp_words
    for part in (string split '|' -- (string replace -r ',\.\.$' '' -- $argv[1]))
        switch $part
            case HOST
                __ptcp_hosts
                __ptcp_ssh_hosts
            case 'RELAY*'
                echo direct
                __ptcp_hosts
            case '*'
                string match -r '^[a-z].*' -- $part
        end
    end
end

# The words of a list, each behind the words that were typed before.
function __ptcp_list
    set -l typed (string match -r '^(?:--[^=]*=)?(.*,)?[^,]*$' -- (commandline -ct))[2]
    for word in (__ptcp_words $argv[1])
        echo $typed$word
    end
end

function __ptcp_declare -a name option letter value help
    set -l spec -c ptcp -n "__ptcp_is $name" -l $option -d $help
    test -n "$letter"; and set -a spec -s $letter
    switch $value
        case ''
        case DIR
            set -a spec -x -a '(__fish_complete_directories (commandline -ct))'
        case 'FILE*' PATH
            set -a spec -r -F
        case CMD COMMAND
            set -a spec -x -a '(__fish_complete_command)'
        case '*,..*'
            set -a spec -x -a "(__ptcp_list '$value')"
        case '*'
            set -a spec -x -a "(__ptcp_words '$value')"
    end
    complete $spec
end

for row in (string split \n -- $__ptcp_table)
    set -l fields (string split -m 4 '~' -- $row)
    test -n "$fields[2]"; and __ptcp_declare $fields
end

complete -c ptcp -n __ptcp_lacks_command -f -a '(__ptcp_commands)'
complete -c ptcp -n '__ptcp_is help' -f -a '(__ptcp_commands)'
complete -c ptcp -n '__ptcp_is key' -a 'show generate list install authorize revoke sign'
complete -c ptcp -n '__ptcp_is overlay' -f -a 'make (__ptcp_hosts)'
complete -c ptcp -n '__ptcp_is rate' -f -a '(__ptcp_running)'
complete -c ptcp -n '__ptcp_is status' -f -a '(__ptcp_running) (__ptcp_hosts)'
complete -c ptcp -n '__ptcp_is advise measure doctor' -f -a '(__ptcp_hosts) (__ptcp_ssh_hosts)'
complete -c ptcp -n '__ptcp_is send recv ls du mkdir rm mv' \
    -a '(__ptcp_hosts | string replace -r "(.*)" "ptcp://\$1/") (__ptcp_ssh_hosts | string replace -r "\$" :)'
