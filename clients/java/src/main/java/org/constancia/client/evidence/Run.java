package org.constancia.client.evidence;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;

import org.constancia.client.Digests;
import org.constancia.client.evidence.ArchiveCheck.Finding;
import org.constancia.client.evidence.ArchiveCheck.ReceiptCheck;
import org.constancia.client.evidence.Events.Link;

/** One check: what was found so far. */
final class Run {
    /** As {@code constancia verify} has them, from the best to the worst. */
    private static final List<String> CODES = List.of("valid", "existence_only", "authority_not_established",
        "signer_not_established", "could_not_check", "not_valid");
    private static final int FINDINGS_MAX = 100;
    private static final String UNCHECKED = "could_not_check";
    private static final String STRUCTURE = "structure: ZIP, entries, canonical documents, digests of all files";
    private static final String CHAIN = "chain: every event, its order, its configuration and its place in the chain";
    private static final String SEGMENTS =
        "segments: every event leads to the root of a round, whose tokens are over it";
    private static final String LOG = "log: the place of every segment, and that all checkpoints are of one history";
    private static final String CONTENT = "content parts that were given";
    private static final String RECEIPTS = "receipts";
    private static final String SIGNATURES = "signatures: by the keys of the certificates inside";
    private static final String ORIGIN = "origin: certificate paths to trusted roots, revocation, validity in time,"
        + " signer lists, and the rules of signatures";
    // What is never checked here, or was not given. The clients for other languages use the same words.
    private static final String LOG_SIGNATURES =
        "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks";
    private static final String RECEIPTS_NOT_GIVEN = "receipts: not given";
    private static final String CONTENT_NOT_GIVEN = "content parts: not all given";
    private static final String REPORTS_NOT_GIVEN = "reports: not given";

    private final Path path;
    private final List<Path> parts;
    private final List<String> signers;
    private final List<Finding> findings = new ArrayList<>();
    private final List<Finding> warnings = new ArrayList<>();
    private final List<String> checked = new ArrayList<>();
    private String code = "signer_not_established";
    private boolean hasUncheckedSignature;
    private boolean hasReceipts; // some were given
    private final Set<String> partNames = new HashSet<>(); // of the archive's content parts that were given
    private Archive archive;
    private boolean isSound; // all of this process's checks passed
    private String sha256; // of what was checked
    private ReceiptCheck receipts;
    private JsonNode program;

    Run(Path path, List<Path> parts, List<String> signers) {
        this.path = path;
        this.parts = parts;
        this.signers = signers;
    }

    ArchiveCheck result() {
        List<String> open = new ArrayList<>(List.of(STRUCTURE, CHAIN, SIGNATURES, ORIGIN));
        if (archive == null || archive.mode.equals("live"))
            open.add(SEGMENTS);
        if (archive != null && archive.hasLog)
            open.add(LOG);
        if (!parts.isEmpty())
            open.add(CONTENT);
        if (hasReceipts)
            open.add(RECEIPTS);
        open.removeAll(checked);
        open.addAll(notGiven());
        String by = program != null ? "program" : checked.contains(SIGNATURES) ? "client" : null;
        boolean isSigned = archive != null && archive.signed != null;
        boolean isStamped = archive != null && archive.stampedAt != null;
        return new ArchiveCheck(code, List.copyOf(findings), List.copyOf(warnings), List.copyOf(checked),
            List.copyOf(open), by, archive == null ? null : archive.manifest,
            isSigned ? archive.signed.fingerprint() : null,
            isStamped ? Forms.timeOf(archive.stampedAt).atOffset(ZoneOffset.UTC) : null, receipts, program);
    }

    private List<String> notGiven() {
        List<String> names = new ArrayList<>();
        if (archive != null && archive.hasLog)
            names.add(LOG_SIGNATURES);
        if (!hasReceipts)
            names.add(RECEIPTS_NOT_GIVEN);
        boolean wasCounted = parts.isEmpty() || checked.contains(CONTENT);
        if (archive != null && wasCounted && partNames.size() < archive.manifest.get("content_parts").size())
            names.add(CONTENT_NOT_GIVEN);
        names.add(REPORTS_NOT_GIVEN); // none can be: the program checks them
        return names;
    }

    private void find(String verdict, String name, String what, String by) {
        worsen(verdict);
        if (findings.size() < FINDINGS_MAX)
            findings.add(new Finding(name, printable(what), by));
    }

    private void warn(String name, String what, String by) {
        if (warnings.size() < FINDINGS_MAX)
            warnings.add(new Finding(name, printable(what), by));
    }

    private void worsen(String verdict) {
        code = CODES.indexOf(verdict) > CODES.indexOf(code) ? verdict : code;
    }

    /** Returns a text whose control characters are escaped: parts of it are of the archive's maker. */
    private static String printable(String text) {
        StringBuilder out = new StringBuilder();
        text.codePoints().forEach(one -> {
            int kind = Character.getType(one);
            boolean isHidden = kind == Character.CONTROL || kind == Character.FORMAT || kind == Character.SURROGATE
                || kind == Character.LINE_SEPARATOR || kind == Character.PARAGRAPH_SEPARATOR
                || kind == Character.PRIVATE_USE || kind == Character.UNASSIGNED;
            if (isHidden)
                out.append(String.format("\\u{%x}", one));
            else
                out.appendCodePoint(one);
        });
        return out.toString();
    }

    // ---- in this process ----

    /**
     * Checks all that this process can. It ends with the first thing that is not valid. given: null without receipts.
     */
    void check(List<Archives.Given> given) throws IOException {
        hasReceipts = given != null;
        String name = path.getFileName().toString();
        try (FileChannel file = FileChannel.open(path)) {
            if (!Zip.isZip(file)) {
                find(UNCHECKED, "file.kind_unknown", name + " is no evidence archive", "client");
                return;
            }
            checkArchive(file, name, given);
            sha256 = archive.zip.digest(); // of what was checked, whatever the path names by now
        } catch (Archive.NotArchive error) {
            find(UNCHECKED, "client.part_alone", error.getMessage(), "client");
            return;
        } catch (Invalid error) {
            find("not_valid", "client.not_valid", error.getMessage(), "client");
            return;
        } catch (UncheckedIOException error) {
            throw error.getCause();
        } catch (RuntimeException | StackOverflowError error) { // what damaged bytes make the libraries throw
            find("not_valid", "client.not_valid", "damaged: " + error, "client");
            return;
        }
        isSound = true;
        if (archive.mode.equals("test"))
            warn("client.test", "a test archive has no probative value", "client");
    }

    private void checkArchive(FileChannel file, String name, List<Archives.Given> given) throws IOException {
        archive = new Archive(file, name);
        checked.add(STRUCTURE);
        archive.checkSignature().forEach(this::judge);
        String own = archive.signed.fingerprint();
        Invalid.require(signers.isEmpty() || signers.contains(own), "the signer " + own,
            "it is not one of those that may have signed");
        checkEvents(given);
        for (Path part : parts) {
            String listed = Parts.check(archive, part, Digests.of(part));
            if (listed != null) {
                partNames.add(listed);
            } else {
                find(UNCHECKED, "client.part_of_another", part.getFileName() + ": of another certification", "client");
            }
        }
        if (!parts.isEmpty())
            checked.add(CONTENT);
    }

    /** Checks the value of a signature, as far as the libraries at hand can. */
    private void judge(Signed signed) {
        if (hasUncheckedSignature)
            return;
        try {
            signed.checkValue();
        } catch (Signed.Unchecked error) {
            hasUncheckedSignature = true;
        }
    }

    private void checkEvents(List<Archives.Given> given) throws IOException {
        try (Differences compare = new Differences(archive)) {
            boolean isUsable = given != null && add(compare, given);
            compare.begin();
            Chain chain = archive.mode.equals("live") ? new Chain(archive, this::judge) : null;
            Comparison comparison = new Comparison(compare);
            if (chain != null)
                chain.walk(comparison);
            else
                new Events(archive).walk(comparison);
            compare.end();
            checked.add(CHAIN);
            if (chain != null)
                checked.add(SEGMENTS);
            if (archive.hasLog)
                checked.add(LOG);
            if (!hasUncheckedSignature)
                checked.add(SIGNATURES);
            if (chain != null && chain.hasOpenStart()) {
                find(UNCHECKED, "client.open_start", "the first segment names no token before, and nothing here shows"
                    + " that it is of the first round of all", "client");
            }
            if (isUsable)
                conclude(compare, comparison.differing);
        }
    }

    /** The receipts of events, reported once these are checked. */
    private final class Comparison implements Visitor {
        private final Differences compare;
        private final List<String> waiting = new ArrayList<>(); // the first ones
        private long differing;

        Comparison(Differences compare) {
            this.compare = compare;
        }

        @Override
        public void read(Link link) throws IOException {
            for (String what : compare.of(link)) {
                differing++;
                if (waiting.size() < FINDINGS_MAX)
                    waiting.add(what);
            }
        }

        @Override
        public void settle() {
            waiting.forEach(what -> find(UNCHECKED, "receipt.event_differs", what, "client"));
            waiting.clear();
        }
    }

    private boolean add(Differences compare, List<Archives.Given> given) throws IOException {
        receipts = new ReceiptCheck(0, 0, 0);
        try {
            int number = 0;
            for (Archives.Given one : given) {
                if (one.file() != null) {
                    compare.addFile(one.file());
                } else {
                    String where = "receipt " + ++number;
                    compare.add(where, one.json().getBytes(StandardCharsets.UTF_8));
                }
            }
            compare.requireUsable();
            for (String reason : compare.unusable)
                find(UNCHECKED, "receipt.malformed", reason, "client");
            return true;
        } catch (Differences.NotUsable error) {
            find(UNCHECKED, "receipt.not_usable", error.getMessage(), "client");
            return false;
        }
    }

    private void conclude(Differences compare, long differing) {
        receipts = new ReceiptCheck(compare.compared, compare.outside, differing);
        checked.add(RECEIPTS);
        if (!compare.leftOut.isEmpty()) {
            find(UNCHECKED, "client.left_out", "events of the time that was asked for were acknowledged, and are not in"
                + " the archive: " + compare.leftOut, "client");
        }
        if (compare.compared == 0)
            find(UNCHECKED, "receipt.event_not_given", "no receipt is of an event of this archive", "client");
    }

    // ---- by the program ----

    /** Has the program judge the same files; the worse of both verdicts counts. */
    void ask(Program with) throws IOException {
        Program.Answer answer = with.run(path, parts);
        String why = objection(answer);
        if (why != null) {
            find(UNCHECKED, "client.program_failed", with.path() + ": " + why, "client");
            return;
        }
        program = answer.said();
        String verdict = program.get("verdict").get("code").textValue();
        program.get("warnings").forEach(one -> warn(one.path("code").asText(), one.path("what").asText(), "program"));
        if (isSound && code.equals("signer_not_established"))
            code = verdict; // that was all that this process could not know
        program.get("findings").forEach(one ->
            find(verdict, one.path("code").asText(), one.path("what").asText(), "program"));
        worsen(verdict);
        for (String one : List.of(SIGNATURES, ORIGIN)) {
            if (!checked.contains(one))
                checked.add(one);
        }
    }

    /** Returns why an answer of the program is not believed, null if it is. */
    private String objection(Program.Answer answer) {
        JsonNode said = answer.said();
        String verdict = said == null ? "" : said.path("verdict").path("code").asText();
        if (!CODES.contains(verdict) || !said.path("findings").isArray() || !said.path("warnings").isArray())
            return answer.errors().isEmpty() ? "exit status " + answer.status() : answer.errors();
        boolean isSeen = false;
        for (JsonNode one : said.path("files"))
            isSeen |= one.path("sha256").asText().equals(sha256);
        boolean isValid = verdict.equals("valid");
        if (isValid && sha256 != null && !isSeen)
            return "it read another file";
        return isValid == (answer.status() == 0) ? null : "exit status " + answer.status();
    }
}
