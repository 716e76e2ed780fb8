package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A TimeStampToken (RFC 3161): its imprint (SHA-256) and its time. */
final class Token {
    private static final Pattern TIME = Pattern.compile("([0-9]{14})(?:\\.([0-9]{1,16}))?Z");
    private static final String SHA_256 = "608648016503040201";

    final Signed signed;
    final String imprint;
    final LocalDateTime time;

    Token(byte[] data, String where) {
        signed = new Signed(data, where, null, Signed.TST_INFO);
        signed.checkTokenVersion();
        List<Ber> parts = Ber.parse(signed.content, 0x30, where).children();
        require(Arrays.equals(Ber.expect(parts, 2, where).content(), new byte[] {1}), where,
            "the version of its TSTInfo");
        Ber.expect(parts, 6, where);
        List<Ber> over = Ber.expect(parts, 0x30, where).children(2, where);
        require(HexFormat.of().formatHex(over.get(0).child(0).content()).equals(SHA_256) && over.get(1).tag == 4, where,
            "another digest than SHA-256");
        imprint = HexFormat.of().formatHex(over.get(1).octets());
        Ber.expect(parts, 2, where);
        Matcher stated = TIME.matcher(new String(Ber.expect(parts, 0x18, where).content(),
            StandardCharsets.ISO_8859_1));
        require(stated.matches(), where, "its time");
        String fraction = ((stated.group(2) == null ? "" : stated.group(2)) + "000000").substring(0, 6);
        time = time(stated.group(1)).withNano(Integer.parseInt(fraction) * 1000);
        for (Ber part : parts) {
            if (part.tag == 0xA1)
                part.children().forEach(extension -> checkExtension(extension, where));
        }
    }

    private static void checkExtension(Ber extension, String where) {
        for (Ber one : extension.children()) {
            require(one.tag != 1 || Arrays.equals(one.content(), new byte[] {0}), where,
                "a critical extension of its TSTInfo");
        }
    }

    /** Returns the time of the first 14 digits of a text. */
    static LocalDateTime time(String digits) {
        int[] number = new int[6];
        for (int at = 0, place = 0; at < 6; place += at == 0 ? 4 : 2, at++)
            number[at] = Integer.parseInt(digits.substring(place, place + (at == 0 ? 4 : 2)));
        require(number[0] > 0, "a time", "the year 0");
        return LocalDateTime.of(number[0], number[1], number[2], number[3], number[4], number[5]);
    }
}
