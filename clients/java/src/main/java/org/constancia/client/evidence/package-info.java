/** Checks of evidence archives without the service. */
package org.constancia.client.evidence;
