# Sourced after tests/e2e/lib.sh: file systems to test on. mount_disk NAME mounts the file system NAME of `disks` at ./disk until
# the case ends, or skips the case.

disks=(tmpfs overlay ext4 xfs btrfs exfat ntfs "ntfs without case" bindfs mergerfs gocryptfs)
for lack in modes modes-silently owners hard-links symlinks xattrs locks case forms dots colons long-names inodes allocation \
	exchange times seconds hundredths years; do
	disks+=("odd without $lack") # tests/trees/odd.c
done

# of_image SIZE COMMAND..: makes a file system in ./image
of_image() {
	truncate -s "$1" image && "${@:2}" image >mkfs.log 2>&1
}

# The last words of a program that mounts say why it cannot.
mount_it() {
	case $1 in
	tmpfs) mount -t tmpfs tmpfs disk ;;
	overlay) mkdir lower upper work && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work disk ;;
	ext4) of_image 64M mkfs.ext4 -q -b 4096 && mount -o loop image disk ;;
	xfs) of_image 320M mkfs.xfs -q && mount -o loop image disk ;;
	btrfs) of_image 128M mkfs.btrfs -q && mount -o loop image disk ;;
	exfat) of_image 64M mkfs.exfat && loop=$(losetup -f --show image) && mount.exfat-fuse "$loop" disk ;;
	ntfs) of_image 64M mkntfs -Fq && ntfs-3g image disk ;;
	"ntfs without case") of_image 64M mkntfs -Fq && lowntfs-3g -o ignore_case image disk ;;
	bindfs) mkdir below && bindfs -o attr_timeout=0,entry_timeout=0 below disk ;;
	mergerfs) mkdir below && mergerfs below disk ;;
	gocryptfs) mkdir below && gocryptfs -init -q -extpass "echo x" below && gocryptfs -q -extpass "echo x" below disk ;;
	"odd without "*)
		mkdir below
		"$BUILD/tests/trees/odd" below disk "${1#odd without }" >odd.out 2>odd.err &
		until_true 10 grep -q mounted odd.out
		;;
	esac
}

# fuse-exfat ends now and then while files are renamed on a busy machine; then nothing can be said about ptcp.
fail_unless_ended() {
	fail() {
		stat "$dir/disk" >stat.out 2>&1 || ! grep -q "not connected" stat.out || skip "the driver of the file system has ended: $*"
		echo "FAILED: $*"
		exit 1
	}
}

mount_disk() {
	local loop=
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	mkdir disk
	trap 'unmount_disk' EXIT
	mount_it "$1" >mount.log 2>&1 && mountpoint -q disk || skip "$1 cannot be mounted here: $(tail -n 1 mount.log)"
	echo "$loop" >loop
	[ "$1" != exfat ] || fail_unless_ended
}

unmount_disk() {
	umount -l "$dir/disk" 2>/dev/null
	losetup -d "$(cat "$dir/loop" 2>/dev/null)" 2>/dev/null
}
