package condition

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// shownValue is the maximum number of bytes of a value that are shown.
const shownValue = 200

// renderValue returns the beginning of a value as text. Its cost does not depend on the value.
func renderValue(v ref.Val) string {
	text := ""
	switch v := v.(type) {
	case *types.Err:
		text = "error: " + v.Error()
	case *Object:
		text = firstBytes(v.raw)
	case *list:
		if v.raw == nil {
			return renderList(v)
		}
		text = firstBytes(v.raw)
	case amount:
		text = "decimal(\"" + v.String() + "\")"
	case types.Timestamp:
		text = v.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	case types.String:
		text = fmt.Sprintf("%q", firstBytes(v))
	case traits.Lister:
		return renderList(v)
	case traits.Mapper:
		text = fmt.Sprintf("an object of %v", v.Size())
	default:
		text = fmt.Sprint(v.Value())
	}
	return printableLine(text, shownValue)
}

// firstBytes returns the prefix of a text that may be shown.
func firstBytes[T ~string | ~[]byte](text T) string {
	return string(text[:min(len(text), shownValue+1)])
}

func renderList(l traits.Lister) string {
	text := "["
	for element := range listElements(l) {
		if len(text) > 1 {
			text += ", "
		}
		if text += renderValue(element); len(text) > shownValue {
			break
		}
	}
	return printableLine(text+"]", shownValue)
}
