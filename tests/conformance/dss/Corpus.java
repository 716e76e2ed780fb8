import eu.europa.esig.dss.model.FileDocument;
import eu.europa.esig.dss.model.x509.CertificateToken;
import eu.europa.esig.dss.simplereport.SimpleReport;
import eu.europa.esig.dss.spi.validation.CommonCertificateVerifier;
import eu.europa.esig.dss.spi.x509.CommonTrustedCertificateSource;
import eu.europa.esig.dss.validation.SignedDocumentValidator;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Has EU DSS judge files as of a time, by its own policy but for the rules about revocation data.
 *
 * <p>Each line of standard input is a name, the time, a file of trusted certificates ("-": none), a file to judge, and files that
 * an evidence record may cover, with tabs between. Each line of standard output is the name and, of each signature and evidence
 * record that was found, DSS's indications; or "none", or "refused" with the reason.
 */
public final class Corpus {
	private static String judge(String[] words, byte[] policy) throws Exception {
		CommonTrustedCertificateSource roots = new CommonTrustedCertificateSource();
		if (!words[2].equals("-"))
			try (InputStream in = Files.newInputStream(Path.of(words[2]))) {
				for (Certificate root : CertificateFactory.getInstance("X.509").generateCertificates(in))
					roots.addCertificate(new CertificateToken((X509Certificate) root));
			}
		CommonCertificateVerifier verifier = new CommonCertificateVerifier();
		verifier.setTrustedCertSources(roots);
		SignedDocumentValidator validator = SignedDocumentValidator.fromDocument(new FileDocument(new File(words[3])));
		validator.setCertificateVerifier(verifier);
		validator.setValidationTime(Date.from(Instant.parse(words[1])));
		if (words.length > 4)
			validator.setDetachedContents(Arrays.stream(words, 4, words.length).map(FileDocument::new)
				.collect(Collectors.toList()));
		SimpleReport report = validator.validateDocument(new ByteArrayInputStream(policy)).getSimpleReport();
		List<String> ids = new ArrayList<>(report.getSignatureIdList());
		ids.addAll(report.getEvidenceRecordIdList());
		return ids.isEmpty() ? "none" : ids.stream().map(id -> report.getIndication(id)
			+ (report.getSubIndication(id) == null ? "" : "/" + report.getSubIndication(id))).collect(Collectors.joining(" "));
	}

	public static void main(String[] arguments) throws Exception {
		byte[] policy = Judge.lenient();
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		for (String line = lines.readLine(); line != null; line = lines.readLine()) {
			String[] words = line.split("\t");
			String said;
			try {
				said = judge(words, policy);
			} catch (Exception refusal) {
				said = "refused " + String.valueOf(refusal.getMessage()).replaceAll("\\s+", " ");
			}
			System.out.println(words[0] + "\t" + said);
		}
	}
}
