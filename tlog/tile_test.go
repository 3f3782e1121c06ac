package tlog

import (
	"errors"
	"math"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentledger/agentledger/id"
)

func TestTilePaths(t *testing.T) {
	for _, c := range []struct {
		tile Tile
		path string
	}{
		{Tile{0, 0, 256}, "tile/0/000"},
		{Tile{0, 0, 1}, "tile/0/000.p/1"},
		{Tile{0, 999, 255}, "tile/0/999.p/255"},
		{Tile{1, 1000, 256}, "tile/1/x001/000"},
		{Tile{2, 1234067, 256}, "tile/2/x001/x234/067"},
		{Tile{3, 1234067, 5}, "tile/3/x001/x234/067.p/5"},
		{Tile{10, 1_000_000, 256}, "tile/10/x001/x000/000"},
		{Tile{63, math.MaxUint64, 10}, "tile/63/x018/x446/x744/x073/x709/x551/615.p/10"},
	} {
		if got := c.tile.Path(); got != c.path {
			t.Errorf("%v: got %q, want %q", c.tile, got, c.path)
		}
		if got, err := ParseTilePath(c.path); err != nil || got != c.tile {
			t.Errorf("%q: got %v, %v, want %v", c.path, got, err, c.tile)
		}
		bundle := Bundle{Index: c.tile.Index, Width: c.tile.Width}
		path := "tile/entries/" + strings.SplitN(c.path, "/", 3)[2]
		if got := bundle.Path(); got != path {
			t.Errorf("%v: got %q, want %q", bundle, got, path)
		}
		if got, err := ParseBundlePath(path); err != nil || got != bundle {
			t.Errorf("%q: got %v, %v, want %v", path, got, err, bundle)
		}
	}
}

func TestTilePathsRefused(t *testing.T) {
	levels := map[string]string{
		"empty level":           "",
		"level with a zero":     "00",
		"level 64":              "64",
		"level 256":             "256",
		"level with a sign":     "+1",
		"level -0":              "-0",
		"level in hex":          "a",
		"level with a space":    " 1",
		"level data":            "data",
		"level in other digits": "١",
	}
	for name, level := range levels {
		if got, err := ParseTilePath("tile/" + level + "/000"); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	positions := map[string]string{
		"empty":                    "",
		"two digits":               "67",
		"four digits":              "0067",
		"letter":                   "06a",
		"sign":                     "+67",
		"underscore":               "0_7",
		"space":                    "06 ",
		"x in the last group":      "x067",
		"no x before":              "001/234",
		"leading zero group":       "x000/067",
		"two leading zero groups":  "x000/x000/067",
		"capital x":                "X001/067",
		"group of two":             "x01/067",
		"group of four":            "x0001/067",
		"slash at the end":         "067/",
		"slash at the front":       "/067",
		"double slash":             "x001//067",
		"index 2^64":               "x018/x446/x744/x073/x709/x551/616",
		"index of eight groups":    "x001/x000/x000/x000/x000/x000/x000/000",
		"index of 200 groups":      strings.Repeat("x001/", 200) + "000",
		"width 0":                  "067.p/0",
		"width 256":                "067.p/256",
		"width with a zero":        "067.p/05",
		"width empty":              "067.p/",
		"width missing":            "067.p",
		"width with a sign":        "067.p/+5",
		"width twice":              "067.p/5.p/5",
		"width with a slash":       "067.p/5/",
		"width in the wrong group": "x001.p/5/067",
		"query":                    "067?x",
		"line end":                 "067\n",
		"escape":                   "%30%36%37",
	}
	for name, position := range positions {
		if got, err := ParseTilePath("tile/0/" + position); !errors.Is(err, ErrMalformed) {
			t.Errorf("tile, %s: got %v, %v", name, got, err)
		}
		if got, err := ParseBundlePath("tile/entries/" + position); !errors.Is(err, ErrMalformed) {
			t.Errorf("bundle, %s: got %v, %v", name, got, err)
		}
	}
	for _, path := range []string{"", "tile", "tile/", "tile/0", "0/000", "/tile/0/000", "Tile/0/000", "tile/entries", "tile//000", "tile/entries//000"} {
		_, tileErr := ParseTilePath(path)
		_, bundleErr := ParseBundlePath(path)
		if tileErr == nil || bundleErr == nil {
			t.Errorf("%q: got %v, %v", path, tileErr, bundleErr)
		}
	}
}

func TestTileWithin(t *testing.T) {
	for _, c := range []struct {
		tile Tile
		size id.Index
		want bool
	}{
		{Tile{0, 0, 1}, 0, false},
		{Tile{0, 0, 1}, 1, true},
		{Tile{0, 0, 2}, 1, false},
		{Tile{0, 0, 256}, 255, false},
		{Tile{0, 0, 256}, 256, true},
		{Tile{0, 1, 1}, 256, false},
		{Tile{0, 0, 17}, 70_000, true}, // a partial tile of an older tree
		{Tile{0, 273, 112}, 70_000, true},
		{Tile{0, 273, 113}, 70_000, false},
		{Tile{0, 273, 256}, 70_000, false},
		{Tile{1, 1, 17}, 70_000, true},
		{Tile{1, 1, 18}, 70_000, false},
		{Tile{2, 0, 1}, 70_000, true},
		{Tile{3, 0, 1}, 70_000, false},
		{Tile{8, 0, 1}, MaxSize, false},
		{Tile{63, 0, 1}, MaxSize, false},
		{Tile{7, 0, 127}, MaxSize, true},
		{Tile{0, math.MaxUint64, 256}, MaxSize, false},
		{Tile{63, math.MaxUint64, 1}, MaxSize, false},
	} {
		if got := c.tile.Within(c.size); got != c.want {
			t.Errorf("%v in %d: got %v", c.tile, c.size, got)
		}
		if bundle := (Bundle{c.tile.Index, c.tile.Width}); c.tile.Level == 0 && bundle.Within(c.size) != c.want {
			t.Errorf("%v in %d: got %v", bundle, c.size, !c.want)
		}
	}
}

func TestPartialsOfTheSpecification(t *testing.T) {
	got := Partials(70_000)
	want := []Tile{{0, 273, 112}, {1, 1, 17}, {2, 0, 1}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("size 70000: got %v, want %v", got, want)
	}
	if got := Partials(256); len(got) != 1 || got[0] != (Tile{1, 0, 1}) {
		t.Errorf("size 256: got %v", got)
	}
	if got := Partials(0); len(got) != 0 {
		t.Errorf("size 0: got %v", got)
	}
}

// golang.org/x/mod accepts what we accept and reads the same from it. Its paths contain the
// tile height and call bundles data.
func FuzzParseTilePath(f *testing.F) {
	for _, s := range []string{"tile/0/000", "tile/1/x001/x234/067.p/5", "tile/63/999.p/255", "tile/00/0", "tile/0/x000/001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		tile, err := ParseTilePath(path)
		if err != nil {
			return
		}
		if got := tile.Path(); got != path {
			t.Errorf("%q is written %q", path, got)
		}
		if tile.Index > math.MaxInt64/TileWidth {
			return
		}
		theirs, err := tlog.ParseTilePath(strings.Replace(path, "tile/", "tile/8/", 1))
		if err != nil || theirs.L != int(tile.Level) || uint64(theirs.N) != tile.Index || theirs.W != int(tile.Width) {
			t.Errorf("%q: ours %v, theirs %v, %v", path, tile, theirs, err)
		}
	})
}

func FuzzParseBundlePath(f *testing.F) {
	for _, s := range []string{"tile/entries/000", "tile/entries/x001/x234/067.p/5", "tile/entries/x000/001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if bundle, err := ParseBundlePath(path); err == nil && bundle.Path() != path {
			t.Errorf("%q is written %q", path, bundle.Path())
		}
	})
}
