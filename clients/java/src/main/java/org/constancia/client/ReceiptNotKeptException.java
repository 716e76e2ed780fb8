package org.constancia.client;

import java.util.List;

/** The service registered the events, and their receipts could not be kept. Keep them yourself, or repeat the call: it
 * returns the same receipts. */
public final class ReceiptNotKeptException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    private final transient List<Receipt> receipts;

    ReceiptNotKeptException(List<Receipt> receipts, Throwable cause) {
        super(receipts.get(0).getEventId() + (receipts.size() > 1 ? " and " + (receipts.size() - 1) + " more" : "")
            + ": registered, but the receipt was not kept: " + cause.getMessage(), cause);
        this.receipts = List.copyOf(receipts);
    }

    /**
     * Returns what was registered.
     *
     * @return one receipt, or those of a batch
     */
    public List<Receipt> receipts() {
        return receipts;
    }
}
