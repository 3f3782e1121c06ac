package frompage

// listedKey is one key of "The list of keys": it signs trees of from <= size < to.
type listedKey struct {
	text     string
	from, to float64 // a double, as all numbers are; to is above every size while the key still signs
}

// readKeys reads the keys of use log from a saved list. It returns false if the list is malformed, lacks the pinned
// key, or has a key of another name.
func readKeys(text, pinned, name string) ([]listedKey, bool) {
	v, err := readObject(text)
	if err != nil || !(table{"keys": listOf(listed)}).holds(v) {
		return nil, false
	}
	var keys []listedKey
	hasPinned := false
	for _, k := range v.object["keys"].list {
		if k.object["use"].text != "log" {
			continue
		}
		if its, _ := readVerifierKey(k.object["vkey"].text); its.name != name {
			return nil, false
		}
		hasPinned = hasPinned || k.object["vkey"].text == pinned
		key := listedKey{k.object["vkey"].text, k.object["from_size"].number, 1 << 64}
		if to := k.object["to_size"]; to.kind == isNumber {
			key.to = to.number
		}
		keys = append(keys, key)
	}
	return keys, hasPinned
}

// listed implements the table of "The list of keys". Unknown members are ignored.
func listed(v value) bool {
	members := table{"vkey": anyText, "use": anyText, "from_size": natural, "to_size": nullOr(natural)}
	if !members.holds(v) {
		return false
	}
	if to := v.object["to_size"]; to.kind == isNumber && to.number < v.object["from_size"].number {
		return false
	}
	_, ofLog := readVerifierKey(v.object["vkey"].text)
	return ofLog || v.object["use"].text != "log"
}

// signs reports whether one of the keys is the given text and signs trees of the size. A key that occurs twice signs
// the sizes of both.
func signs(keys []listedKey, text string, size uint64) bool {
	for _, k := range keys {
		// A size of 2^53 or more is rounded here, but is above all sizes of a list anyway.
		if k.text == text && k.from <= float64(size) && float64(size) < k.to {
			return true
		}
	}
	return false
}
