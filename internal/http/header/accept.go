// Package header parses the HTTP headers that both surfaces and clients of the service must interpret in the same way:
// Accept and Accept-Encoding (RFC 9110, section 12.5) to select the form of a response, and Retry-After (section 10.2.3)
// to time the next request. Callers get a decision and never see the syntax of a header.
//
// Invariants:
//
//   - A malformed header is treated as absent. It never rejects a request.
//   - Every function is pure: the result depends only on the arguments.
package header

import (
	"mime"
	"strconv"
	"strings"
)

// PreferredMedia returns the offer that the Accept header values prefer, and the first of several that are equally
// preferred. If no offer is acceptable, it returns the first: a response in another form is more useful than none.
func PreferredMedia(accept []string, offers ...string) string {
	best, most := offers[0], 0.0
	for _, offer := range offers {
		if q := mediaQuality(accept, offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// mediaQuality returns the weight of the most specific media range that covers offer (RFC 9110 section 12.5.1), or 0 if
// none does.
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

// coverage is how specifically a media range matches a type.
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

// parseQuality returns the q parameter, or 1 if it is absent or malformed.
func parseQuality(parameters map[string]string) float64 {
	q, err := strconv.ParseFloat(parameters["q"], 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 1
	}
	return q
}
