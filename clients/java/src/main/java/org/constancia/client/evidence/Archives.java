package org.constancia.client.evidence;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

import org.constancia.client.CallInterruptedException;
import org.constancia.client.Receipt;
import org.constancia.client.ReceiptFile;
import org.constancia.client.model.Event;

/**
 * Checks evidence archives of any size without the service: their shape, all digests, the chain of events, segments and
 * rounds, content parts and receipts here, and that the keys of the certificates inside made the signatures.
 *
 * <p>Whose signatures these are is for {@code constancia verify} to say, which is run where it is installed. Without it
 * no archive is valid.
 */
public final class Archives {
    private final Path archive;
    private final List<Given> receipts = new ArrayList<>();
    private boolean hasReceipts;
    private final List<Path> parts = new ArrayList<>();
    private final List<Path> trust = new ArrayList<>();
    private final List<Path> signerLists = new ArrayList<>();
    private final List<String> signers = new ArrayList<>();
    private Instant at;
    private Path program = Path.of("constancia");
    private boolean isProgramRequired;

    /** Receipts: those of a file, or one as JSON. */
    record Given(Path file, String json) { }

    private Archives(Path archive) {
        this.archive = archive;
    }

    /**
     * Begins a check.
     *
     * @param archive its path
     * @return a check to be configured
     */
    public static Archives of(Path archive) {
        return new Archives(archive);
    }

    /**
     * Checks an archive against receipts, with the program if it is installed.
     *
     * @param archive its path
     * @param receipts files of receipts, with those that they were rotated to; none: no receipts
     * @return what was found
     */
    public static ArchiveCheck verify(Path archive, Path... receipts) {
        Archives check = of(archive);
        for (Path one : receipts)
            check.receipts(one);
        return check.verify();
    }

    /**
     * Adds a file of receipts, with those that it was rotated to. A receipt that differs makes the code
     * {@code could_not_check}: nothing shows which of the two is genuine. Receipts of other events are counted, if at
     * least one is of this archive.
     *
     * @param file one in each line, one alone, or a JSON array
     * @return this
     */
    public Archives receipts(Path file) {
        hasReceipts = true;
        List<Path> files;
        try {
            files = new ReceiptFile(file).files();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        if (files.isEmpty())
            throw new UncheckedIOException(new NoSuchFileException(file + ": there are no receipts"));
        files.forEach(one -> receipts.add(new Given(one, null)));
        return this;
    }

    /**
     * Adds receipts.
     *
     * @param events of registrations or lists
     * @return this
     */
    public Archives receipts(Collection<? extends Event> events) {
        hasReceipts = true;
        events.forEach(one -> receipts.add(new Given(null, Receipt.toJson(one))));
        return this;
    }

    /**
     * Adds content parts.
     *
     * @param files their paths
     * @return this
     */
    public Archives parts(Collection<Path> files) {
        parts.addAll(files);
        return this;
    }

    /**
     * Adds roots to trust, for the program.
     *
     * @param pem a file of certificates
     * @return this
     */
    public Archives trust(Path pem) {
        trust.add(pem);
        return this;
    }

    /**
     * Adds a list of signers, for the program.
     *
     * @param list of {@link org.constancia.client.Client#signerList}, as a file
     * @return this
     */
    public Archives signerList(Path list) {
        signerLists.add(list);
        return this;
    }

    /**
     * Names certificates that alone may have signed.
     *
     * @param sha256 of the certificates, with or without colons
     * @return this
     */
    public Archives signer(String... sha256) {
        Arrays.stream(sha256).map(one -> one.toLowerCase(Locale.ROOT).replace(":", "")).forEach(signers::add);
        return this;
    }

    /**
     * Has the program judge as of a time instead of now.
     *
     * @param time the time
     * @return this
     */
    public Archives at(Instant time) {
        at = time;
        return this;
    }

    /**
     * Names the program, which has to be there. Without this call the program {@code constancia} is run if the path of
     * programs has it.
     *
     * @param path its path, or its name in the path of programs
     * @return this
     */
    public Archives program(Path path) {
        program = path;
        isProgramRequired = true;
        return this;
    }

    /**
     * Does not run the program: no archive is valid then.
     *
     * @return this
     */
    public Archives withoutProgram() {
        program = null;
        return this;
    }

    /**
     * Checks the archive.
     *
     * @return what was found
     */
    public ArchiveCheck verify() {
        try {
            Run run = new Run(archive, parts, signers);
            run.check(hasReceipts ? receipts : null);
            Path found = program == null ? null : Program.find(program);
            if (found != null)
                run.ask(new Program(found, trust, signerLists, signers, at));
            else if (program != null && isProgramRequired)
                throw new NoSuchFileException("the program " + program + " is not installed");
            return run.result();
        } catch (ClosedByInterruptException error) {
            throw new CallInterruptedException();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
