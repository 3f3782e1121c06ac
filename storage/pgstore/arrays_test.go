package pgstore

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// The driver decodes what is sent to the same values, and writes the same bytes.
func TestArrays(t *testing.T) {
	m := pgtype.NewMap()
	numbers, small, texts := int8s(3), int2s(2), byteas(1, 1)
	for _, v := range []uint64{0, 1 << 63, 7} {
		numbers.int8(v)
	}
	small.int2(-1)
	small.int2(3)
	texts.bytes([]byte("two "), []byte("pieces"))
	texts.null()
	texts.text("")
	tests := []struct {
		name   string
		array  array
		typeID uint32
		want   any
	}{
		{"int8", numbers, pgtype.Int8ArrayOID, []int64{0, -1 << 63, 7}},
		{"int2", small, pgtype.Int2ArrayOID, []int16{-1, 3}},
		{"bytea", texts, pgtype.ByteaArrayOID, [][]byte{[]byte("two pieces"), nil, {}}},
		{"empty", int8s(5), pgtype.Int8ArrayOID, []int64{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			value := test.array.value()
			got := reflect.New(reflect.TypeOf(test.want))
			if err := m.Scan(test.typeID, pgtype.BinaryFormatCode, value, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), test.want) {
				t.Errorf("read: got %v, %v, want %v", got.Elem(), err, test.want)
			}
			if test.array.count == 0 {
				return // the driver writes a dimension without elements, the server none
			}
			written, err := m.Encode(test.typeID, pgtype.BinaryFormatCode, test.want, nil)
			if err != nil || !bytes.Equal(value, written) {
				t.Errorf("written: got %x, want %x, %v", value, written, err)
			}
		})
	}
}

// The only elements of arrays are parameters on their own: NULL is nil, and an empty text is not.
func TestElements(t *testing.T) {
	number, null, empty, text := int8s(1), byteas(1, 0), byteas(1, 0), byteas(1, 3)
	number.int8(7)
	null.null()
	empty.text("")
	text.bytes([]byte("a"), []byte("bc"))
	got := elements(values(&number, &null, &empty, &text))
	want := [][]byte{{0, 0, 0, 0, 0, 0, 0, 7}, nil, {}, []byte("abc")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
