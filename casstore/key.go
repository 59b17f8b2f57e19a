package casstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/carrelfs/carrel/casstore/pack"
	"github.com/carrelfs/carrel/casstore/vfs"
)

// KeyLen is the length of the key of an encrypted store, in bytes.
const KeyLen = 32

// encryptionFile says that a store is encrypted, and by what a key is known to be its key.
const encryptionFile = "ENCRYPTED"

// keyRotation is how old a key gets with which Badger encrypts what it writes; it has them encrypted with its own.
const keyRotation = 10 * 24 * time.Hour

// keys are what is derived from the key of a store. The key itself encrypts nothing.
type keys struct {
	records []byte // Badger's
	packs   []byte
	check   []byte // in encryptionFile
}

func deriveKeys(key []byte) (k keys, err error) {
	for _, d := range []struct {
		to   *[]byte
		info string
		n    int
	}{{&k.records, "carrel records 1", 32}, {&k.packs, "carrel packs 1", pack.KeyLen}, {&k.check, "carrel check 1", 32}} {
		if *d.to, err = hkdf.Key(sha256.New, key, nil, d.info, d.n); err != nil {
			return keys{}, err
		}
	}
	return k, nil
}

// Encrypted reports whether the store in dir is encrypted.
func Encrypted(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, encryptionFile))
	return err == nil
}

// AEAD returns a cipher (AES-256-GCM, which makes its own nonces) for what a process keeps beside an encrypted store, with a key
// of its own for each purpose. It is nil for a store that is not encrypted.
func (s *Store) AEAD(purpose string) (cipher.AEAD, error) {
	if len(s.opt.Key) == 0 {
		return nil, nil
	}
	key, err := hkdf.Key(sha256.New, s.opt.Key, nil, "carrel "+purpose, KeyLen)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// useKey finds out whether the store is encrypted, and whether the key is its key, before anything of it is opened. In a store that
// is being made it says that for all time.
func (s *Store) useKey(fresh bool) error {
	path, given := filepath.Join(s.dir, encryptionFile), len(s.opt.Key) > 0
	check, err := readEncryption(path)
	if fresh && errors.Is(err, vfs.ErrCorrupt) { // a crash has left it like that, and nothing depends on it
		check, err = nil, os.Remove(path)
	}
	switch {
	case err != nil:
		return err
	case !given && check == nil:
		return nil
	case !given:
		return fmt.Errorf("the store is encrypted, and no key was given: %w", vfs.ErrKey)
	case len(s.opt.Key) != KeyLen:
		return fmt.Errorf("a key of %d bytes, not %d: %w", len(s.opt.Key), KeyLen, vfs.ErrKey)
	case check == nil && !fresh:
		return fmt.Errorf("a key was given, and the store is not encrypted: %w", vfs.ErrKey)
	}
	if s.keys, err = deriveKeys(s.opt.Key); err != nil {
		return err
	}
	if check == nil {
		return writeEncryption(path, s.keys.check)
	}
	if subtle.ConstantTimeCompare(check, s.keys.check) != 1 {
		return fmt.Errorf("the store is encrypted with another key: %w", vfs.ErrKey)
	}
	return nil
}

// The file, as FORMAT.md has it: magic 8 bytes | version 1 | check 32 | CRC-32C of these 4.
const (
	encryptionMagic   = "carrel\x00e"
	encryptionVersion = 1
	encryptionLen     = len(encryptionMagic) + 1 + 32 + 4
)

func encodeEncryption(check []byte) []byte {
	b := append([]byte(encryptionMagic), encryptionVersion)
	b = append(b, check...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func decodeEncryption(b []byte) (check []byte, err error) {
	n := len(encryptionMagic)
	switch {
	case len(b) > n && string(b[:n]) == encryptionMagic && b[n] > encryptionVersion:
		return nil, fmt.Errorf("%s: version %d: %w", encryptionFile, b[n], vfs.ErrNewerFormat)
	case len(b) != encryptionLen || string(encodeEncryption(b[n+1:n+33])) != string(b):
		return nil, fmt.Errorf("%s: %d bytes that are not what they were: %w", encryptionFile, len(b), vfs.ErrCorrupt)
	}
	return b[n+1 : n+33], nil
}

// readEncryption returns nil for a store that is not encrypted.
func readEncryption(path string) (check []byte, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeEncryption(b)
}

// writeEncryption makes the file, durable before anything else of the store is.
func writeEncryption(path string, check []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(encodeEncryption(check))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
