// WEBHOOK_SECRET=whsec_… java Verify.java TIMESTAMP SIGNATURE < body
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
    static final long TOLERANCE_SECONDS = 300;

    /** timestamp and signature: the headers X-SVC-Timestamp and X-SVC-Signature; body: the raw bytes
     * of the request, before any JSON parser has seen them. */
    static boolean verify(String secret, String timestamp, String signature, byte[] body)
            throws Exception {
        if (!timestamp.matches("[0-9]{1,18}")) {
            return false;
        }
        long age = System.currentTimeMillis() / 1000 - Long.parseLong(timestamp);
        if (Math.abs(age) > TOLERANCE_SECONDS) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        mac.update((timestamp + ".").getBytes(StandardCharsets.UTF_8));
        byte[] expected = ("v1=" + HexFormat.of().formatHex(mac.doFinal(body)))
                .getBytes(StandardCharsets.UTF_8);
        // After a rotation there are two signatures; one of them must be good.
        for (String given : signature.split(",")) {
            if (MessageDigest.isEqual(expected, given.trim().getBytes(StandardCharsets.UTF_8))) {
                return true;
            }
        }
        return false;
    }

    public static void main(String[] words) throws Exception {
        boolean good = verify(System.getenv("WEBHOOK_SECRET"), words[0], words[1],
                System.in.readAllBytes());
        System.out.println(good ? "valid" : "invalid");
        System.exit(good ? 0 : 1);
    }
}
