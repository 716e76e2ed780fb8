#!/bin/sh
# Prints a header with the digest of the given files.
echo "#define RENDERER_BUILD \"$(cat "$@" | sha256sum | cut -c 1-16)\""
