#!/bin/sh
# A header that tells the digest of the files given.
echo "#define RENDERER_BUILD \"$(cat "$@" | sha256sum | cut -c 1-16)\""
