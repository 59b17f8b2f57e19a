// Package encode holds the commands that spell bytes in other ways: base64, base32, xxd, od, hexdump and strings, and the
// checksums of the sha and md5 kind. All stream.
package encode
