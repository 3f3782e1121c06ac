package keytable

import (
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
)

// Decoder decodes Multikeys and caches the keys, because decoding one costs as much as a verification. It must not be
// used concurrently. The zero value is ready to use.
type Decoder struct{ keys map[string]edkey.Public }

// maxDecoded bounds the number of cached keys, about 200 bytes each.
const maxDecoded = 4096

// Decode returns the key of a Multikey. Errors are those of did.ParseMultikey and edkey.ParsePublic.
func (d *Decoder) Decode(multikey string) (edkey.Public, error) {
	if k, ok := d.keys[multikey]; ok {
		return k, nil
	}
	raw, err := did.ParseMultikey(multikey)
	if err != nil {
		return edkey.Public{}, err
	}
	k, err := edkey.ParsePublic(raw[:])
	if err != nil {
		return edkey.Public{}, err
	}
	if d.keys == nil || len(d.keys) >= maxDecoded {
		d.keys = make(map[string]edkey.Public)
	}
	d.keys[multikey] = k
	return k, nil
}
