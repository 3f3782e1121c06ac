package condition

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// shownValue is how many bytes of a value are shown.
const shownValue = 200

// show returns the beginning of a value as text. What it costs does not depend on the
// value.
func show(v ref.Val) string {
	text := ""
	switch v := v.(type) {
	case *types.Err:
		text = "error: " + v.Error()
	case *Object:
		text = beginning(v.raw)
	case *list:
		if v.raw == nil {
			return showList(v)
		}
		text = beginning(v.raw)
	case amount:
		text = "decimal(\"" + v.String() + "\")"
	case types.Timestamp:
		text = v.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	case types.String:
		text = fmt.Sprintf("%q", beginning(v))
	case traits.Lister:
		return showList(v)
	case traits.Mapper:
		text = fmt.Sprintf("an object of %v", v.Size())
	default:
		text = fmt.Sprint(v.Value())
	}
	return oneLine(text, shownValue)
}

// beginning returns what may be shown of a text.
func beginning[T ~string | ~[]byte](text T) string {
	return string(text[:min(len(text), shownValue+1)])
}

func showList(l traits.Lister) string {
	text := "["
	for element := range elementsOf(l) {
		if len(text) > 1 {
			text += ", "
		}
		if text += show(element); len(text) > shownValue {
			break
		}
	}
	return oneLine(text+"]", shownValue)
}
