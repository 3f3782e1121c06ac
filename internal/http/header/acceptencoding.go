package header

import (
	"mime"
	"strings"
)

// Gzip is the only content coding that the service offers.
const Gzip = "gzip"

// WantsGzip reports whether a client that sent these Accept-Encoding values prefers gzip to the unencoded bytes (RFC 9110
// section 12.5.3). A client that names no coding, or refuses all, does not.
func WantsGzip(values []string) bool {
	gzip, identity, others := -1.0, -1.0, -1.0 // not named
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			coding, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			switch q := parseQuality(parameters); coding {
			case Gzip, "x-gzip":
				gzip = max(gzip, q)
			case "identity":
				identity = max(identity, q)
			case "*":
				others = max(others, q)
			}
		}
	}
	if gzip < 0 {
		gzip = others
	}
	return gzip > 0 && gzip >= identity
}
