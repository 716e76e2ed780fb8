#!/bin/sh
# WEBHOOK_SECRET=whsec_… verify.sh TIMESTAMP SIGNATURE < body
# TIMESTAMP and SIGNATURE are the headers X-SVC-Timestamp and X-SVC-Signature.
set -eu
timestamp=$1 signature=$2
case $timestamp in '' | *[!0-9]*) echo "invalid: no timestamp"; exit 1 ;; esac
age=$(($(date +%s) - timestamp))
if [ "$age" -gt 300 ] || [ "$age" -lt -300 ]; then
	echo "invalid: too old"
	exit 1
fi
expected=$({ printf '%s.' "$timestamp"; cat; } |
	openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r | cut -d ' ' -f 1)
# After a rotation there are two signatures; one of them must be good.
case ",$signature," in
*",v1=$expected,"*) echo valid ;;
*) echo "invalid: wrong signature"; exit 1 ;;
esac
