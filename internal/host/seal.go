package host

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// maxSealed bounds what Unseal looks at, in bytes of text.
const maxSealed = 1 << 10

// Seal turns a place of the store, such as where a page of a list ended, into an opaque
// text for clients. It can be read only by Unseal with the same scope, and in this store:
// its key and epoch are part of it (DESIGN §4). What a client holds tells nothing, not
// even which session the place is at. An empty place is an empty text.
//
// The scope names what the place belongs to, filters included: the same words in the
// same order.
func (h *Host) Seal(place string, scope ...string) string {
	if place == "" {
		return ""
	}
	k := h.sealKeys()
	tag := k.tag(place, scope)
	text := append(tag, place...)
	k.stream(tag).XORKeyStream(text[sealTag:], text[sealTag:])
	return base64.RawURLEncoding.EncodeToString(text)
}

// Unseal gives the place back. A text that was altered, or that another store, another
// scope or nobody made, is ErrInvalid, and so told apart from nothing else.
func (h *Host) Unseal(text string, scope ...string) (place string, err error) {
	if text == "" {
		return "", nil
	}
	invalid := fmt.Errorf("%w: the cursor was not made here", ErrInvalid)
	if len(text) > maxSealed {
		return "", invalid
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) <= sealTag {
		return "", invalid
	}
	k := h.sealKeys()
	tag, data := sealed[:sealTag], sealed[sealTag:]
	k.stream(tag).XORKeyStream(data, data)
	if !hmac.Equal(tag, k.tag(string(data), scope)) {
		return "", invalid
	}
	return string(data), nil
}

// sealTag is the length of the tag, which is also where the cipher's stream begins: a
// synthetic one, so that no two places share a stream, and no randomness is needed.
const sealTag = aes.BlockSize

// sealKeys are derived from the store's key, for this use alone (R35 has others).
type sealKeys struct {
	epoch        string
	mac, encrypt []byte
}

func (h *Host) sealKeys() sealKeys {
	identity := h.journal.Identity()
	return sealKeys{identity.Epoch, derive(identity.Key, "seal mac"), derive(identity.Key, "seal encrypt")}
}

func derive(key [32]byte, use string) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("mahati " + use))
	return mac.Sum(nil)
}

// tag is over length and bytes of each part, so that no two lists of parts look alike.
func (k sealKeys) tag(place string, scope []string) []byte {
	mac := hmac.New(sha256.New, k.mac)
	for _, part := range append([]string{place, k.epoch}, scope...) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)[:sealTag]
}

func (k sealKeys) stream(tag []byte) cipher.Stream {
	block, err := aes.NewCipher(k.encrypt)
	if err != nil {
		panic("host: a digest is a key: " + err.Error())
	}
	return cipher.NewCTR(block, tag)
}
