package org.constancia.client;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;

/**
 * An open file under a lock against other threads and processes. Locks of files are those of a process, so that a
 * thread takes one of a few locks of the process first.
 */
final class Locked implements AutoCloseable {
    private static final int ATTEMPTS_MAX = 1000;
    /** Of files that are waited for, which are few. */
    private static final Map<Path, ReentrantLock> THREADS = new ConcurrentHashMap<>();
    private static final Set<Path> CLAIMED = ConcurrentHashMap.newKeySet();
    static final boolean IS_POSIX = Path.of("").getFileSystem().supportedFileAttributeViews().contains("posix");

    private final FileChannel channel;
    private final Runnable release;
    private final boolean isNew;

    private Locked(FileChannel channel, Runnable release, boolean isNew) {
        this.channel = channel;
        this.release = release;
        this.isNew = isNew;
    }

    FileChannel channel() {
        return channel;
    }

    boolean isNew() {
        return isNew;
    }

    /** Opens a file, which is created with mode 600 if it is missing, and waits for its lock. */
    static Locked waitFor(Path path) throws IOException {
        ReentrantLock threads = THREADS.computeIfAbsent(keyed(path), one -> new ReentrantLock());
        threads.lock();
        try {
            for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
                Locked found = attempt(path, threads::unlock, true, true);
                if (found != null)
                    return found;
            }
            throw new IOException(path + ": the name is never that of a file");
        } catch (IOException | RuntimeException | Error error) {
            threads.unlock();
            throw error;
        }
    }

    /** Returns a file under its lock; null if another has it, or if the name is not that of a plain file. */
    static Locked claim(Path path) {
        if (!IS_POSIX)
            return null;
        Path key = keyed(path);
        if (!CLAIMED.add(key))
            return null;
        Locked found = null;
        try {
            found = attempt(path, () -> CLAIMED.remove(key), false, false);
        } catch (IOException | RuntimeException error) {
            return null;
        } finally {
            if (found == null)
                CLAIMED.remove(key);
        }
        return found;
    }

    private static Path keyed(Path path) {
        return path.toAbsolutePath().normalize();
    }

    /** Returns null if the file was not locked, or its name became that of another file meanwhile. */
    private static Locked attempt(Path path, Runnable release, boolean isPrivate, boolean waits)
            throws IOException {
        boolean isNew = create(path, isPrivate);
        Object before = keyOf(path, waits);
        if (before == null && IS_POSIX)
            return null;
        Set<? extends java.nio.file.OpenOption> options = waits
            ? Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE)
            : Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        FileChannel channel;
        try {
            channel = FileChannel.open(path, options);
        } catch (NoSuchFileException error) {
            return null;
        }
        try {
            FileLock lock = waits ? channel.lock() : channel.tryLock();
            if (lock != null && Objects.equals(before, keyOf(path, waits)))
                return new Locked(channel, release, isNew);
        } catch (IOException | RuntimeException error) {
            channel.close();
            throw error;
        }
        channel.close();
        return null;
    }

    private static boolean create(Path path, boolean isPrivate) throws IOException {
        try {
            if (isPrivate && IS_POSIX)
                Files.createFile(path,
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            else
                Files.createFile(path);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        }
    }

    /** Returns what identifies the file of this name; null if there is none, or none that may be used. */
    private static Object keyOf(Path path, boolean follows) throws IOException {
        try {
            if (follows)
                return Files.readAttributes(path, BasicFileAttributes.class).fileKey();
            Map<String, Object> found = Files.readAttributes(path, "unix:isRegularFile,nlink,uid,fileKey",
                LinkOption.NOFOLLOW_LINKS);
            boolean isOwn = Boolean.TRUE.equals(found.get("isRegularFile"))
                && ((Number) found.get("nlink")).intValue() == 1 && found.get("uid").equals(Self.UID);
            return isOwn ? found.get("fileKey") : null;
        } catch (NoSuchFileException error) {
            return null;
        }
    }

    /** The user, as the owner of a file that this process makes. */
    private static final class Self {
        static final Object UID = uid();

        private static Object uid() {
            try {
                Path made = Files.createTempFile("constancia", null);
                try {
                    return Files.getAttribute(made, "unix:uid");
                } finally {
                    Files.delete(made);
                }
            } catch (IOException error) {
                return null;
            }
        }
    }

    @Override
    public void close() throws IOException {
        try {
            channel.close();
        } finally {
            release.run();
        }
    }
}
