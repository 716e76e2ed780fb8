"""The evidence computed independently from the published rules alone, with nothing of the service's code."""

import base64
import hashlib
import json
import subprocess


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(value):
    """RFC 8785, for what the evidence documents hold: no fractions, names of ASCII."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def config_hash(channel_id, config):
    """Of a ChannelConfig record of the interface."""
    return sha256(canonical({
        "channel_id": channel_id,
        "declarant": config["declarant"],
        "description": config["description"] or None,
        "modality": config["modality"],
        "name": config["name"],
        "sealed_at": config["sealed_at"],
        "supplementary_info": config["supplementary_info"] or None,
        "v": 1,
        "version": config["version"],
    }))


def event_record(event, config_digest, previous_chain_hash):
    return canonical({
        "chain": event["mode"],
        "channel_id": event["channel_id"],
        "client_ref": event["client_ref"],
        "config_hash": config_digest,
        "config_version": event["config_version"],
        "event_id": event["event_id"],
        "hash": event["hash"],
        "hash_alg": event["hash_alg"],
        "modality": event["modality"],
        "occurred_at": event["occurred_at"],
        "previous_chain_hash": previous_chain_hash,
        "received_at": event["received_at"],
        "sequence": event["sequence"],
        "v": 1,
    })


def combine(hashes):
    return hashlib.sha256(b"".join(sorted(map(bytes.fromhex, hashes)))).hexdigest()


def path_root(leaf, path):
    """RFC 4998 section 4.3: the root to which a reducedHashtree leads."""
    for place, hashes in enumerate(path):
        if place == 0:
            assert leaf in hashes, "the first list holds the leaf"
            leaf = combine(hashes)
        else:
            assert leaf not in hashes
            leaf = combine([leaf, *hashes])
    return leaf


def tree_root(leaves):
    """RFC 4998 section 4.2 with two children a node; a lone node is carried up unchanged."""
    while len(leaves) > 1:
        pairs = [leaves[i:i + 2] for i in range(0, len(leaves), 2)]
        leaves = [combine(pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0]


def sibling_root(leaf, siblings):
    for sibling in siblings:
        leaf = combine([leaf, sibling])
    return leaf


def token_is_over(token, digest, trust, directory):
    """Whether OpenSSL finds the RFC 3161 token (base64) good for the digest under the roots."""
    path = directory / "token.der"
    path.write_bytes(base64.b64decode(token, validate=True))
    done = subprocess.run(["openssl", "ts", "-verify", "-digest", digest, "-in", path, "-token_in",
                           "-CAfile", trust], capture_output=True, text=True, check=False)
    return done.returncode == 0 and "Verification: OK" in done.stdout + done.stderr


def check_proof(event, proof, config, trust, directory):
    """From the declared facts to the authority's token, and nothing missing between."""
    digest = config_hash(event["channel_id"], config)
    assert proof["config_hash"] == digest
    record = event_record(event, digest, proof["previous_chain_hash"])
    assert sha256(record) == event["chain_hash"]
    root = path_root(event["chain_hash"], proof["path"])
    assert root == proof["round"]["root"]
    assert token_is_over(proof["round"]["token"], root, trust, directory)
    assert not token_is_over(proof["round"]["token"], sha256(b"else"), trust, directory)
