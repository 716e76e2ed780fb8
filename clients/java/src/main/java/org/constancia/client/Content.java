package org.constancia.client;

/**
 * Declared content as it is held.
 *
 * @param body the bytes
 * @param mediaType of the answer
 * @param fileName null where there is none
 */
public record Content(byte[] body, String mediaType, String fileName) { }
