# Clean Debian systems in directories, for scripts that set `top` (this tree), `work` (a directory for roots) and
# a function `fatal`. Need root, mmdebstrap and Debian's mirror.

# inside ROOT COMMAND…: runs a command with processes and mounts of its own, which end with it.
inside() { # ROOT COMMAND…
	unshare --mount --pid --fork --kill-child -- bash -c '
		mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/run" && mount -t tmpfs tmpfs "$0/dev/shm" &&
		exec chroot "$0" env LC_ALL=C.UTF-8 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$@"
}

# sources SUITE: prints this machine's package sources for another suite.
sources() {
	local file=/etc/apt/sources.list.d/debian.sources
	[ -f $file ] || file=/etc/apt/sources.list
	sed -E "s/\b(bookworm|trixie)\b/$1/g" $file
}

# fresh_root SUITE DIRECTORY: creates a minimal system with make and this tree. It fetches packages in the same
# way as this machine.
fresh_root() {
	mkdir -p "$work"
	if [ ! -f "$work/$1.tar" ]; then
		sources "$1" >"$work/$1.sources"
		case $(head -n 5 "$work/$1.sources") in *Types:*) mv "$work/$1.sources" "$work/$1.deb822.sources" ;; esac
		mmdebstrap --variant=minbase --mode=root --quiet --include=make "$1" "$work/$1.new.tar" "$work/$1"*sources ||
			fatal "cannot make a root of $1"
		mv "$work/$1.new.tar" "$work/$1.tar"
	fi
	rm -rf "$2"
	mkdir -p "$2"
	tar --extract --numeric-owner --directory "$2" --file "$work/$1.tar"
	cp /etc/resolv.conf "$2/etc/resolv.conf"
	apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-)' >"$2/etc/apt/apt.conf.d/99mirror"
	rm -rf "$2"/var/lib/apt/lists/*
	mkdir "$2/src"
	(cd "$top" && git ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
		tar --null --files-from - --create) | tar --extract --directory "$2/src"
}
