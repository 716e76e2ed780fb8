/** The client: registering, certifying, downloading with checks, notices. */
package org.constancia.client;
