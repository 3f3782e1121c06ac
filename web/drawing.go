package web

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// drawing is a picture of the Merkle tree of a log, as RFC 9162 defines it. It depends on the size of the tree and on a
// window of entries only. Inside the window each node is drawn. Outside, a perfect subtree is one shape, a crown, as high as
// its levels. The template "drawing" renders it as SVG.
//
// A drawing has at most as many squares as its layout, and at most two crowns for each level.
type drawing struct {
	Class         string
	Width, Height int
	Root          *node
	Hash          string  // of the root, shortened
	Crowns        []*node // left to right
	Squares       []*node // the entries in the window, and single entries outside, left to right
	Base          px      // of the labels
}

// node is a node of the tree. A node is on the path (Lit) if the marked entry is below it, and has a ring if its parent is
// on the path and it is not: the rings are the hashes of the inclusion proof of the marked entry.
type node struct {
	Begin, End id.Index // its entries
	X, Y       px
	Line       string // from its parent, as the d of an SVG path; "" for the root
	Lit, Ring  bool
	Left       *node // nil for crowns and squares, like Right
	Right      *node

	Square px    // the side of the square of an entry, 0 for other nodes
	Entry  *leaf // what is known of the entry of a square; nil if nothing is

	Width  px // of a crown, 0 for other nodes
	Points string
	Lines  string
	Label  bool // the crown is wide enough for its number of entries
}

// leaf is what a drawing shows of an entry.
type leaf struct {
	URL   string // "" if there is none
	Words string
	Class string
}

// px is a coordinate or a length in pixels.
type px float64

func (p px) String() string {
	return strings.TrimSuffix(strconv.FormatFloat(float64(p), 'f', 1, 64), ".0")
}

// Entries returns the number of entries below the node.
func (n *node) Entries() id.Index { return n.End - n.Begin }

// SquareX and SquareY are the top left corner of a square.
func (n *node) SquareX() px { return n.X - n.Square/2 }
func (n *node) SquareY() px { return n.Y - n.Square/2 + 1 }

// RootX and RootY are the position of the text that names the root, TextAnchor its SVG anchor.
func (d *drawing) RootX() px {
	if d.rootIsRight() {
		return d.Root.X - 12
	}
	return d.Root.X + 12
}
func (d *drawing) RootY() px { return max(d.Root.Y-6, 12) }
func (d *drawing) RootAnchor() string {
	if d.rootIsRight() {
		return "end"
	}
	return "start"
}
func (d *drawing) rootIsRight() bool { return d.Root.X > px(d.Width)*0.6 }

// level returns the height of a node above the entries: the number of hashes from the root of its subtree to the deepest of
// its entries.
func (n *node) level() int { return bits.Len64(uint64(n.Entries() - 1)) }

func (n *node) isPerfect() bool { return n.Entries()&(n.Entries()-1) == 0 }

// layout is the form of drawings of one width.
type layout struct {
	class         string
	width, window int // pixels, entries
	level, height px  // height of a level, and of the tree, at most
	crown         px  // width of a crown for each of its levels
	step, maxStep px  // from one square to the next
	label         px  // width of a crown with a label
}

var layouts = [...]layout{
	{class: "wide", width: 1160, window: 40, level: 20, height: 230, crown: 4, step: 14, maxStep: 18, label: 36},
	{class: "narrow", width: 358, window: 16, level: 16, height: 180, crown: 1.2, step: 8, maxStep: 12, label: 999},
}

const (
	nodeGap   px = 8   // between two neighbours that are not both squares, at most
	crownEdge px = 10  // added to the width of each crown
	maxScale  px = 2.2 // of the width of crowns, where there is space
	headRoom  px = 32  // above the root
	footRoom  px = 28  // below the entries
	margin    px = 4   // left and right
)

// drawTrees returns the drawings of the tree of a size with a root, one for each layout. marked is the entry whose inclusion proof is
// shown, nil for none. entries has what is known of entries, by index. Without entries in the tree there is no drawing.
func drawTrees(size id.Index, root id.Hash, marked *id.Index, entries map[id.Index]*leaf) []*drawing {
	if size == 0 {
		return nil
	}
	all := make([]*drawing, len(layouts))
	for i := range layouts {
		all[i] = layouts[i].draw(size, marked, entries)
		hash := root.String()
		all[i].Hash = hash[:4] + " " + hash[4:8] + " … " + hash[len(hash)-4:]
	}
	return all
}

// findWindow returns the entries that are drawn one by one: the latest, or those around the marked one. It begins at a
// multiple of 8, so that the crowns before it are not tiny.
func (l *layout) findWindow(size id.Index, marked *id.Index) id.Range {
	latest := id.Range{End: size}
	if all := id.Index(l.window); size > all {
		latest.Begin = (size - all + 7) &^ 7
	}
	if marked == nil || *marked >= latest.Begin {
		return latest
	}
	block := id.Index(1) << (bits.Len(uint(l.window)) - 1) // the largest power of two that fits
	begin := *marked &^ (block - 1)
	return id.Range{Begin: begin, End: min(begin+block, size)}
}

func (l *layout) draw(size id.Index, marked *id.Index, entries map[id.Index]*leaf) *drawing {
	d := &drawing{Class: l.class, Width: l.width}
	d.Root = d.open(&node{End: size}, l.findWindow(size, marked))
	height := l.level
	if levels := d.Root.level(); levels > 0 {
		height = min(height, l.height/px(levels))
	}
	base := headRoom + height*px(d.Root.level())
	d.Base, d.Height = base+footRoom-8, int(base+footRoom)
	l.place(d)
	d.Root.connect(nil, base, height)
	if marked != nil {
		d.Root.mark(*marked)
	}
	for _, c := range d.Crowns {
		c.drawCrown(base, height, l.label)
	}
	for _, s := range d.Squares {
		s.Entry = entries[s.Begin]
	}
	return d
}

// open adds the nodes below n, in order. It opens nodes with entries in the window, and nodes that are not perfect, which
// are at the right edge of the tree.
func (d *drawing) open(n *node, window id.Range) *node {
	outside := n.End <= window.Begin || n.Begin >= window.End
	switch {
	case n.Entries() == 1:
		d.Squares = append(d.Squares, n)
		n.Square = 1
	case outside && n.isPerfect():
		d.Crowns = append(d.Crowns, n)
		n.Width = 1
	default:
		split := n.Begin + id.Index(1)<<(n.level()-1) // the largest power of two below the number of entries
		n.Left = d.open(&node{Begin: n.Begin, End: split}, window)
		n.Right = d.open(&node{Begin: split, End: n.End}, window)
	}
	return n
}

// place gives crowns and squares their widths and x, from left to right.
func (l *layout) place(d *drawing) {
	var crowns px
	for _, c := range d.Crowns {
		c.Width = crownEdge + l.crown*px(c.level())
		crowns += c.Width
	}
	gap := min(nodeGap, px(l.width)/4/px(len(d.Crowns)+1))
	free := px(l.width) - 2*margin - gap*px(2*len(d.Crowns)) // a crown has at most two neighbours
	step := l.step
	if len(d.Squares) > 0 {
		step = min(l.maxStep, max(l.step, (free-crowns)/px(len(d.Squares))))
	}
	scale := min(maxScale, (free-step*px(len(d.Squares)))/max(crowns, 1))
	x := margin
	var last *node
	var put func(n *node)
	put = func(n *node) {
		switch {
		case n.Left != nil:
			put(n.Left)
			put(n.Right)
			return
		case last != nil && (n.Square == 0 || last.Square == 0):
			x += gap
		}
		last = n
		if n.Square > 0 {
			n.Square = min(step-3, 14)
			n.X = x + step/2
			x += step
			return
		}
		n.Width *= scale
		n.X = x + n.Width/2
		x += n.Width
	}
	put(d.Root)
}

// connect gives each node its place, and its line from the parent. A node that has only squares below it is above their
// middle, others are above the space behind their left part.
func (n *node) connect(parent *node, base, height px) {
	n.Y = base - height*px(n.level())
	if n.Left != nil {
		n.Left.connect(n, base, height)
		n.Right.connect(n, base, height)
		next := n.Right
		for next.Left != nil && !next.isPerfect() {
			next = next.Left
		}
		share := px(0.4)
		if n.isPerfect() {
			share = 0.5
		}
		n.X = n.Left.X + share*(next.X-n.Left.X)
		for _, child := range []*node{n.Left, n.Right} {
			child.Line = fmt.Sprintf("M%v %vL%v %v", n.X, n.Y, child.X, child.Y)
		}
	}
}

// mark lights the path to an entry below n, and rings its siblings.
func (n *node) mark(entry id.Index) {
	n.Lit = true
	if n.Left == nil {
		return
	}
	path, sibling := n.Left, n.Right
	if entry >= n.Right.Begin {
		path, sibling = n.Right, n.Left
	}
	sibling.Ring = true
	path.mark(entry)
}

// crownLevels is how many levels of nodes are drawn at the top of a crown.
const crownLevels = 4

// drawCrown draws the shape of a perfect subtree with its top levels. The outline follows the outermost nodes.
func (n *node) drawCrown(base, height, label px) {
	n.Label = n.Width >= label
	var left, right []string
	for level := range n.level() + 1 {
		half := n.Width / 2 * (1 - 1/px(uint64(1)<<min(level, 60)))
		y := n.Y + height*px(level)
		if level > 8 {
			half, y = n.Width/2, base
		}
		left = append(left, fmt.Sprintf("%v,%v", n.X-half, y))
		right = append([]string{fmt.Sprintf("%v,%v", n.X+half, y)}, right...)
		if level > 8 {
			break
		}
	}
	n.Points = strings.Join(append(left, right...), " ")
	var lines strings.Builder
	for level := range min(crownLevels, n.level()) {
		nodes := 1 << level
		y := n.Y + height*px(level)
		for i := range nodes {
			x := n.X - n.Width/2 + n.Width*(px(i)+0.5)/px(nodes)
			side := n.Width / px(4*nodes)
			fmt.Fprintf(&lines, "M%v %vL%v %vL%v %v", x-side, y+height, x, y, x+side, y+height)
		}
	}
	n.Lines = lines.String()
}
