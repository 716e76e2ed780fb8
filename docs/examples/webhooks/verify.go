// WEBHOOK_SECRET=whsec_… go run verify.go TIMESTAMP SIGNATURE < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const tolerance = 300 // seconds

// Verify takes the headers X-SVC-Timestamp and X-SVC-Signature, and the raw bytes of the request.
func Verify(secret, timestamp, signature string, body []byte) bool {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	if age := time.Now().Unix() - sent; age > tolerance || age < -tolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := []byte("v1=" + hex.EncodeToString(mac.Sum(nil)))
	// After a rotation there are two signatures; one of them must be good.
	for _, given := range strings.Split(signature, ",") {
		if hmac.Equal(expected, []byte(strings.TrimSpace(given))) {
			return true
		}
	}
	return false
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !Verify(os.Getenv("WEBHOOK_SECRET"), os.Args[1], os.Args[2], body) {
		fmt.Println("invalid")
		os.Exit(1)
	}
	fmt.Println("valid")
}
