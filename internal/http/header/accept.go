// Package header reads the headers by which a client chooses the form of an answer: Accept and
// Accept-Encoding (RFC 9110, section 12.5).
//
// Invariants:
//
//   - A header that makes no sense counts as one that is absent. It refuses nothing.
//   - Every function is pure.
package header

import (
	"mime"
	"strconv"
	"strings"
)

// PreferredMedia returns the one of offers that the Accept header values want most;
// among equals the first. When none is wanted it is the first too: an answer in
// a form that was not asked for is of more use than none.
func PreferredMedia(accept []string, offers ...string) string {
	best, most := offers[0], 0.0
	for _, offer := range offers {
		if q := mediaQuality(accept, offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// mediaQuality returns the weight of the most specific media range that covers offer
// (RFC 9110 section 12.5.1), 0 when none does.
func mediaQuality(accept []string, offer string) float64 {
	closest, weight := uncovered, 0.0
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			media, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			if c := coverageOf(media, offer); c > closest {
				closest, weight = c, parseQuality(parameters)
			}
		}
	}
	return weight
}

// coverage says how closely a media range names a type.
type coverage uint8

const (
	uncovered coverage = iota
	byAll
	byKind
	byName
)

func coverageOf(media, offer string) coverage {
	kind, _, _ := strings.Cut(offer, "/")
	switch media {
	case offer:
		return byName
	case kind + "/*":
		return byKind
	case "*/*":
		return byAll
	}
	return uncovered
}

// parseQuality reads the q parameter, 1 when it is absent or makes no sense.
func parseQuality(parameters map[string]string) float64 {
	q, err := strconv.ParseFloat(parameters["q"], 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 1
	}
	return q
}
