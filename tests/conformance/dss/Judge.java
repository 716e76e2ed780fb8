import eu.europa.esig.dss.diagnostic.DiagnosticData;
import eu.europa.esig.dss.diagnostic.EvidenceRecordWrapper;
import eu.europa.esig.dss.diagnostic.SignatureWrapper;
import eu.europa.esig.dss.diagnostic.TimestampWrapper;
import eu.europa.esig.dss.diagnostic.jaxb.XmlDigestMatcher;
import eu.europa.esig.dss.diagnostic.jaxb.XmlSignatureScope;
import eu.europa.esig.dss.enumerations.ASiCContainerType;
import eu.europa.esig.dss.enumerations.DigestMatcherType;
import eu.europa.esig.dss.enumerations.EvidenceRecordTypeEnum;
import eu.europa.esig.dss.enumerations.Indication;
import eu.europa.esig.dss.enumerations.SignatureLevel;
import eu.europa.esig.dss.enumerations.SignatureScopeType;
import eu.europa.esig.dss.enumerations.SubIndication;
import eu.europa.esig.dss.enumerations.TimestampType;
import eu.europa.esig.dss.model.DSSDocument;
import eu.europa.esig.dss.model.FileDocument;
import eu.europa.esig.dss.model.x509.CertificateToken;
import eu.europa.esig.dss.simplereport.SimpleReport;
import eu.europa.esig.dss.spi.validation.CommonCertificateVerifier;
import eu.europa.esig.dss.spi.x509.CommonTrustedCertificateSource;
import eu.europa.esig.dss.spi.x509.revocation.crl.ExternalResourcesCRLSource;
import eu.europa.esig.dss.validation.SignedDocumentValidator;
import eu.europa.esig.dss.validation.reports.Reports;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipFile;

/**
 * Has the European Commission's Digital Signature Service judge reports and evidence archives.
 *
 * <p>usage: Judge TRUST.pem (signed|stamped|lasting|complete|altered) [LIST.crl...] FILE...
 * <br>or: Judge TRUST.pem (record|validated|foreign) [LIST.crl...] (RECORD-N.ers|CONTAINER-N.asice)...
 *
 * <p>Of a signed file level B is expected, of a stamped one level T, of a lasting one too, but LTA
 * of a report; a complete one is a lasting one that satisfies DSS's own policy by what is inside it,
 * with no list besides; an altered one is refused. An evidence record with N archive timestamps has to cover the event.json beside it, or each file in documents/,
 * which are inside with it where it is a container (.asice);
 * a foreign one is refused with it, and so is a container of which a file is another. With revocation lists DSS's own policy has to be satisfied; without any, the same
 * policy but for its rules about revocation data. A validated record satisfies DSS's own policy by what is inside it. Prints a line "ok ..." or "FAIL ..." for each
 * check, with DSS's words indented below.
 */
public final class Judge {
	private final CommonTrustedCertificateSource roots = new CommonTrustedCertificateSource();
	private final List<DSSDocument> revocationLists = new ArrayList<>();
	private final byte[] lenientPolicy;
	private boolean complete;
	private boolean failed;

	private Judge(Path trust) throws Exception {
		try (InputStream in = Files.newInputStream(trust)) {
			for (Certificate root : CertificateFactory.getInstance("X.509").generateCertificates(in))
				roots.addCertificate(new CertificateToken((X509Certificate) root));
		}
		lenientPolicy = lenient();
	}

	/** DSS's own policy, but certificates of which no revocation data is at hand are a warning. */
	static byte[] lenient() throws Exception {
		try (InputStream in = Judge.class.getResourceAsStream("/policy/constraint.xml")) {
			String policy = new String(in.readAllBytes(), StandardCharsets.UTF_8);
			String changed = policy
				.replace("<RevocationDataAvailable Level=\"FAIL\"",
					"<RevocationDataAvailable Level=\"WARN\"")
				.replace("<AcceptableRevocationDataFound Level=\"FAIL\"",
					"<AcceptableRevocationDataFound Level=\"WARN\"");
			if (changed.equals(policy))
				throw new IllegalStateException("the policy has no rules about revocation data");
			return changed.getBytes(StandardCharsets.UTF_8);
		}
	}

	/** policy null: DSS's own. */
	private Reports validate(File file, byte[] policy, File... detached) {
		CommonCertificateVerifier verifier = new CommonCertificateVerifier();
		verifier.setTrustedCertSources(roots);
		verifier.setCrlSource(
			new ExternalResourcesCRLSource(revocationLists.toArray(new DSSDocument[0])));
		SignedDocumentValidator validator =
			SignedDocumentValidator.fromDocument(new FileDocument(file));
		validator.setCertificateVerifier(verifier);
		if (detached.length > 0)
			validator.setDetachedContents(
				Stream.of(detached).map(FileDocument::new).collect(Collectors.toList()));
		return policy == null ? validator.validateDocument()
			: validator.validateDocument(new ByteArrayInputStream(policy));
	}

	private void check(String label, List<String> faults) {
		System.out.println((faults.isEmpty() ? "ok   " : "FAIL ") + label);
		faults.forEach(fault -> System.out.println("       " + fault));
		failed |= !faults.isEmpty();
	}

	private static void require(boolean good, List<String> faults, String fault) {
		if (!good)
			faults.add(fault);
	}

	private static String describe(XmlDigestMatcher reference) {
		return reference.getType() + " " + reference.getDocumentName() + " "
			+ (reference.isDataFound() ? "found" : "not found") + ", "
			+ (reference.isDataIntact() ? "intact" : "not intact");
	}

	private static void references(List<XmlDigestMatcher> references, List<String> faults) {
		require(!references.isEmpty(), faults, "no reference data");
		for (XmlDigestMatcher reference : references)
			require(reference.isDataFound() && reference.isDataIntact(), faults,
				describe(reference));
	}

	private static List<String> format(DiagnosticData data, SignatureWrapper signature,
			boolean archive, boolean stamped, boolean published) {
		List<String> faults = new ArrayList<>();
		SignatureLevel level = archive
			? published ? SignatureLevel.CAdES_BASELINE_LT
			: stamped ? SignatureLevel.CAdES_BASELINE_T : SignatureLevel.CAdES_BASELINE_B
			: published ? SignatureLevel.PAdES_BASELINE_LTA
			: stamped ? SignatureLevel.PAdES_BASELINE_T : SignatureLevel.PAdES_BASELINE_B;
		require(signature.getSignatureFormat() == level, faults,
			"the format is " + signature.getSignatureFormat());
		require(signature.isStructuralValidationValid(), faults,
			String.join("; ", signature.getStructuralValidationMessages()));
		require(signature.isBLevelTechnicallyValid(), faults, "level B is not valid");
		require(!stamped || signature.isTLevelTechnicallyValid(), faults, "level T is not valid");
		ASiCContainerType container = data.getContainerType();
		require(container == (archive ? ASiCContainerType.ASiC_E : null), faults,
			"the container is " + container);
		return faults;
	}

	private static List<String> integrity(SignatureWrapper signature, boolean stamped) {
		List<String> faults = new ArrayList<>();
		require(signature.isSignatureIntact(), faults, "the signature is not intact");
		require(signature.isSignatureValid(), faults, "the signature is not valid");
		require(signature.isSigningCertificateIdentified(), faults, "the signer is not identified");
		require(signature.isTrustedChain(), faults, "the signer's chain is not trusted");
		references(signature.getDigestMatchers(), faults);
		List<TimestampWrapper> stamps = signature.getSignatureTimestamps();
		require(stamps.size() == (stamped ? 1 : 0), faults, stamps.size() + " timestamps");
		stamps.forEach(stamp -> stamp(stamp, faults));
		return faults;
	}

	/** What the signature does not cover of a lasting report its document timestamp does. */
	private static List<String> coverage(File file, DiagnosticData data,
			SignatureWrapper signature, boolean archive, boolean lasting) throws Exception {
		List<String> faults = new ArrayList<>();
		if (!archive) {
			List<TimestampWrapper> last = data.getTimestampList().stream()
				.filter(stamp -> stamp.getType() == TimestampType.DOCUMENT_TIMESTAMP)
				.collect(Collectors.toList());
			require(last.size() == (lasting ? 1 : 0), faults, last.size() + " document timestamps");
			last.forEach(stamp -> stamp(stamp, faults));
			Set<SignatureScopeType> scopes = (last.isEmpty() ? signature.getSignatureScopes()
				: last.get(0).getTimestampScopes()).stream()
				.map(XmlSignatureScope::getScope).collect(Collectors.toSet());
			require(scopes.equals(Set.of(SignatureScopeType.FULL)), faults, "scopes " + scopes);
			require(!signature.arePdfModificationsDetected(), faults, "modifications of the PDF");
			return faults;
		}
		Set<String> covered = signature.getDigestMatchers().stream()
			.filter(reference -> reference.getType() == DigestMatcherType.MANIFEST_ENTRY)
			.map(XmlDigestMatcher::getDocumentName).collect(Collectors.toCollection(TreeSet::new));
		try (ZipFile zip = new ZipFile(file)) {
			Set<String> entries = zip.stream().map(entry -> entry.getName())
				.filter(name -> !name.equals("mimetype") && !name.startsWith("META-INF/"))
				.collect(Collectors.toCollection(TreeSet::new));
			require(covered.equals(entries), faults,
				"the signature covers " + covered + ", the archive has " + entries);
		}
		return faults;
	}

	private static String words(SimpleReport report, String id) {
		return report.getIndication(id)
			+ (report.getSubIndication(id) == null ? "" : "/" + report.getSubIndication(id))
			+ report.getAdESValidationErrors(id).stream().map(message -> message.getValue())
				.collect(Collectors.joining(" ", ": ", ""));
	}

	private void genuine(File file, String name, boolean stamped, boolean published)
			throws Exception {
		boolean archive = name.endsWith(".zip"), lasting = published && !archive;
		Reports strict = validate(file, null);
		DiagnosticData data = strict.getDiagnosticData();
		if (data.getSignatures().size() != 1) {
			check(name + ": one signature", List.of(data.getSignatures().size() + " found"));
			return;
		}
		SignatureWrapper signature = data.getSignatures().get(0);
		check(name + ": " + signature.getSignatureFormat()
			+ (archive ? " in " + data.getContainerType() : ""),
			format(data, signature, archive, stamped, published));
		check(name + ": signature" + (stamped ? ", timestamp" : "") + " and "
			+ signature.getDigestMatchers().size() + " references intact, chains trusted",
			integrity(signature, stamped));
		check(name + ": everything is covered", coverage(file, data, signature, archive, lasting));

		SimpleReport report = strict.getSimpleReport();
		String own = words(report, signature.getId());
		boolean lenient = revocationLists.isEmpty() && !complete;
		if (lenient)
			report = validate(file, lenientPolicy).getSimpleReport();
		List<String> faults = new ArrayList<>();
		require(report.getIndication(signature.getId()) == Indication.TOTAL_PASSED, faults,
			words(report, signature.getId()));
		check(name + (lenient ? ": TOTAL_PASSED if revocation may be unknown ("
			+ "else " + own + ")" : ": TOTAL_PASSED by DSS's own policy"), faults);
	}

	private static void stamp(TimestampWrapper stamp, List<String> faults) {
		require(stamp.isSignatureIntact() && stamp.isSignatureValid(), faults,
			"the timestamp's signature is not valid");
		require(stamp.isMessageImprintDataFound() && stamp.isMessageImprintDataIntact(),
			faults, "the timestamp's imprint is another");
		require(stamp.isTrustedChain(), faults, "the timestamp's chain is not trusted");
	}

	/** The documents of a certification, in a directory of their own, or an event's record. */
	private static File[] data(File record) {
		File[] documents = new File(record.getParentFile(), "documents").listFiles();
		return documents != null ? documents
			: new File[] {new File(record.getParentFile(), "event.json")};
	}

	/** What DSS has to be given beside the file. */
	private static File[] detached(File file) {
		return file.getName().endsWith(".asice") ? new File[0] : data(file);
	}

	private static Set<String> names(File[] data) {
		return Stream.of(data).map(File::getName).collect(Collectors.toCollection(TreeSet::new));
	}

	/** The hashes beside an event's in the tree are of objects that DSS cannot know. */
	private static List<String> covered(EvidenceRecordWrapper record, Set<String> wanted) {
		List<String> faults = new ArrayList<>();
		List<XmlDigestMatcher> own = record.getDigestMatchers().stream()
			.filter(each -> each.getType() == DigestMatcherType.EVIDENCE_RECORD_ARCHIVE_OBJECT)
			.collect(Collectors.toList());
		references(own, faults);
		Set<String> found = own.stream().map(XmlDigestMatcher::getDocumentName)
			.collect(Collectors.toCollection(TreeSet::new));
		require(own.size() == wanted.size() && found.equals(wanted), faults,
			own.size() + " data objects: " + found);
		record.getTimestampList().forEach(stamp -> stamp(stamp, faults));
		return faults;
	}

	private void record(File file, String name) {
		Reports strict = validate(file, null, detached(file));
		ASiCContainerType container = strict.getDiagnosticData().getContainerType();
		boolean contained = file.getName().endsWith(".asice");
		List<EvidenceRecordWrapper> records = strict.getDiagnosticData().getEvidenceRecords();
		if (records.size() != 1) {
			check(name + ": one evidence record", List.of(records.size() + " found"));
			return;
		}
		EvidenceRecordWrapper record = records.get(0);
		int wanted = Integer.parseInt(file.getName().replaceAll("[^0-9]", ""));
		List<String> faults = new ArrayList<>();
		require(record.getEvidenceRecordType() == EvidenceRecordTypeEnum.ASN1_EVIDENCE_RECORD,
			faults, "its type is " + record.getEvidenceRecordType());
		require(container == (contained ? ASiCContainerType.ASiC_E : null), faults,
			"the container is " + container);
		require(record.getTimestampList().size() == wanted, faults,
			record.getTimestampList().size() + " timestamps");
		require(record.isStructuralValidationValid(), faults,
			String.join("; ", record.getStructuralValidationMessages()));
		check(name + ": RFC 4998, " + wanted + " timestamps", faults);
		Set<String> data = names(data(file));
		check(name + ": it covers " + String.join(", ", data)
			+ ", timestamps intact, chains trusted", covered(record, data));
		SimpleReport report = strict.getSimpleReport();
		String own = words(report, record.getId());
		boolean lenient = revocationLists.isEmpty() && !complete;
		if (lenient)
			report = validate(file, lenientPolicy, detached(file)).getSimpleReport();
		List<String> refused = new ArrayList<>();
		require(report.getIndication(record.getId()) == Indication.PASSED, refused,
			words(report, record.getId()));
		for (TimestampWrapper stamp : record.getTimestampList())
			require(report.getIndication(stamp.getId()) == Indication.PASSED, refused,
				"timestamp: " + words(report, stamp.getId()));
		check(name + (lenient ? ": PASSED if revocation may be unknown (else "
			+ own + ")" : ": PASSED by DSS's own policy"), refused);
	}

	private void foreign(File file, String name) {
		List<String> faults = new ArrayList<>();
		SimpleReport report = validate(file, lenientPolicy, detached(file)).getSimpleReport();
		String id = report.getFirstEvidenceRecordId();
		SubIndication wanted = detached(file).length == 0 ? SubIndication.HASH_FAILURE
			: SubIndication.SIGNED_DATA_NOT_FOUND;
		require(id != null && report.getSubIndication(id) == wanted, faults, words(report, id));
		check(name + ": refused (" + words(report, id) + ")", faults);
	}

	private void altered(File file, String name) {
		List<String> faults = new ArrayList<>();
		String how;
		try {
			Reports reports = validate(file, lenientPolicy);
			SimpleReport report = reports.getSimpleReport();
			List<String> ids = report.getSignatureIdList();
			for (String id : ids)
				require(report.getIndication(id) == Indication.TOTAL_FAILED, faults,
					words(report, id));
			how = ids.isEmpty() ? "no signature found" : words(report, ids.get(0));
		} catch (RuntimeException refusal) {
			how = refusal.getMessage();
		}
		check(name + ": refused (" + how + ")", faults);
	}

	public static void main(String[] arguments) throws Exception {
		Judge judge = new Judge(Path.of(arguments[0]));
		judge.complete = List.of("complete", "validated").contains(arguments[1]);
		for (int i = 2; i < arguments.length; i++) {
			File file = new File(arguments[i]);
			String name = file.getParentFile().getName() + "/" + file.getName();
			if (name.endsWith(".crl"))
				judge.revocationLists.add(new FileDocument(file));
			else if (arguments[1].equals("altered"))
				judge.altered(file, name);
			else if (List.of("record", "validated").contains(arguments[1]))
				judge.record(file, name);
			else if (arguments[1].equals("foreign"))
				judge.foreign(file, name);
			else
				judge.genuine(file, name, !arguments[1].equals("signed"),
					judge.complete || arguments[1].equals("lasting"));
		}
		System.exit(judge.failed ? 1 : 0);
	}
}
