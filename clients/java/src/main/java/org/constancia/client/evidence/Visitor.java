package org.constancia.client.evidence;

import java.io.IOException;

import org.constancia.client.evidence.Events.Link;

/** Takes the events and leaves of an archive, none of which waits in memory for its segment to be checked. */
interface Visitor {
    /** Takes each one as it is read. */
    void read(Link link) throws IOException;

    /** Is called when all that were read are checked. */
    void settle();
}
