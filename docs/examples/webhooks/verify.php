<?php
// WEBHOOK_SECRET=whsec_… php verify.php TIMESTAMP SIGNATURE < body

// $timestamp and $signature: the headers X-SVC-Timestamp and X-SVC-Signature; $body: the raw bytes
// of the request (file_get_contents('php://input')).
function verify(string $secret, string $timestamp, string $signature, string $body,
                int $tolerance = 300): bool
{
    if (!preg_match('/^\d+\z/', $timestamp) || abs(time() - (int) $timestamp) > $tolerance) {
        return false;
    }
    $expected = 'v1=' . hash_hmac('sha256', $timestamp . '.' . $body, $secret);
    // After a rotation there are two signatures; one of them must be good.
    foreach (explode(',', $signature) as $given) {
        if (hash_equals($expected, trim($given))) {
            return true;
        }
    }
    return false;
}

if (PHP_SAPI === 'cli') {
    $good = verify(getenv('WEBHOOK_SECRET'), $argv[1], $argv[2], file_get_contents('php://stdin'));
    echo $good ? "valid\n" : "invalid\n";
    exit($good ? 0 : 1);
}
