//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package constancia

import (
	"os"
	"syscall"
)

// claim returns what an earlier call left, if it is still there and under the new name; nil if not, or if it may be of
// another user: others can put what they like into a folder that is shared.
func claim(rest, part string) *os.File {
	file, err := os.OpenFile(rest, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	found, err := file.Stat()
	if err == nil && found.Mode().IsRegular() && isOwn(found) && os.Rename(rest, part) == nil {
		now, err := os.Lstat(part)
		if err == nil && os.SameFile(found, now) {
			return file
		}
		os.Remove(part) // it was another already: fetched from the beginning
	}
	file.Close()
	return nil
}

// isOwn returns whether a file is of this user, and has one name.
func isOwn(info os.FileInfo) bool {
	about, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(about.Uid) == os.Geteuid() && about.Nlink == 1
}

// hasOtherName returns whether a file has more than one name.
func hasOtherName(info os.FileInfo) bool {
	about, ok := info.Sys().(*syscall.Stat_t)
	return ok && about.Nlink > 1
}

const canLock = true

// lock waits for the lock of a file, which its end releases.
func lock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
