package org.constancia.client.evidence;

import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Inclusion and consistency proofs of a log's tree (RFC 9162, section 2.1). */
final class Proofs {
    private static final byte[] EMPTY_ROOT = Forms.running("SHA-256").digest();

    private Proofs() {
    }

    /** The way from a node of a tree to its root: to which side each hash of a proof belongs. */
    private static final class Climb {
        private long node;
        private long last;

        Climb(long index, long size) {
            node = index;
            last = size - 1;
        }

        /** Goes up to the first node that is not the right one of two. */
        void skipLeft() {
            while ((node & 1) == 1)
                up();
        }

        boolean isAtRoot() {
            return last == 0;
        }

        /** Goes up, and returns whether the next hash is on the left. */
        boolean isLeft() {
            boolean found = (node & 1) == 1 || node == last;
            while (found && (node & 1) == 0 && node > 0)
                up();
            up();
            return found;
        }

        private void up() {
            node >>= 1;
            last >>= 1;
        }
    }

    private static byte[] node(byte[] left, byte[] right) {
        MessageDigest running = Forms.running("SHA-256");
        running.update((byte) 1);
        running.update(left);
        return running.digest(right);
    }

    static byte[] leaf(byte[] entry) {
        MessageDigest running = Forms.running("SHA-256");
        running.update((byte) 0);
        return running.digest(entry);
    }

    /** Returns whether a leaf has that index in a tree (section 2.1.3.2). */
    static boolean isIncluded(byte[] leaf, long index, long size, List<byte[]> path, byte[] root) {
        Climb climb = new Climb(index, size);
        byte[] hash = leaf;
        for (byte[] one : path) {
            if (climb.isAtRoot())
                return false;
            hash = climb.isLeft() ? node(one, hash) : node(hash, one);
        }
        return climb.isAtRoot() && Arrays.equals(hash, root);
    }

    /** Returns whether a tree begins with a smaller one (section 2.1.4.2). */
    static boolean isConsistent(long oldSize, byte[] oldRoot, long size, byte[] root, List<byte[]> proof) {
        if (oldSize == 0)
            return proof.isEmpty() && Arrays.equals(oldRoot, EMPTY_ROOT);
        if (proof.isEmpty())
            return false;
        List<byte[]> path = new ArrayList<>(proof);
        // A tree of a power of two leaves is a node of the larger one; the proof does not repeat it.
        if (Long.bitCount(oldSize) == 1)
            path.add(0, oldRoot);
        Climb climb = new Climb(oldSize - 1, size);
        climb.skipLeft();
        byte[] was = path.get(0);
        byte[] is = was;
        for (byte[] one : path.subList(1, path.size())) {
            if (climb.isAtRoot())
                return false;
            boolean isLeft = climb.isLeft();
            was = isLeft ? node(one, was) : was;
            is = isLeft ? node(one, is) : node(is, one);
        }
        return climb.isAtRoot() && Arrays.equals(was, oldRoot) && Arrays.equals(is, root);
    }
}
