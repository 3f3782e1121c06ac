package pack

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// source is the reader of a pack. It stores its first error, so that Check can distinguish a file
// that cannot be read from a pack that is wrong.
type source struct {
	r   io.ReaderAt
	err error
}

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(b []byte, offset int64) (int, error) {
	n, err := s.r.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.note(err)
	}
	return n, err
}

// note stores an error.
func (s *source) note(err error) error {
	s.err = cmp.Or(s.err, err)
	return err
}

// archive contains the files of a pack, in the order of the manifest.
type archive struct {
	files  []member
	byName map[string]*member
}

// newArchive sorts the files of a container and checks their names.
func newArchive(files []member) (*archive, error) {
	if err := withoutFolder(files); err != nil {
		return nil, err
	}
	sort.SliceStable(files, func(i, j int) bool { // one function for all types, unlike slices.SortFunc
		a, b := files[i].name, files[j].name
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) < 0
	})
	a := &archive{files: files, byName: make(map[string]*member, len(files))}
	for i := range files {
		a.byName[files[i].name] = &files[i]
	}
	if !a.hasNames() {
		return nil, fmt.Errorf("names of the files: %w", verify.ErrMalformed)
	}
	return a, nil
}

// rank returns the position of a file in a pack: policies have rank 0, files before them a lower
// rank and files after them a higher one.
func rank(name string) int {
	if i := slices.Index(filesBefore, name); i >= 0 {
		return i - len(filesBefore)
	}
	return 1 + slices.Index(filesAfter, name)
}

// hasNames reports whether the files have exactly the names of a pack's files.
func (a *archive) hasNames() bool {
	filesAfter := slices.DeleteFunc(slices.Clone(filesAfter), func(name string) bool {
		return a.byName[name] == nil && (name == FileVoters || name == FileActs)
	})
	policies := len(a.files) - len(filesBefore) - len(filesAfter)
	if policies < 0 || policies > MaxPolicies {
		return false
	}
	for i := range a.files {
		name, after := a.files[i].name, i-len(filesBefore)-policies
		switch {
		case i < len(filesBefore):
			if name != filesBefore[i] {
				return false
			}
		case after >= 0:
			if name != filesAfter[after] {
				return false
			}
		default:
			if _, ok := policyDigest(name); !ok {
				return false
			}
		}
	}
	return len(a.byName) == len(a.files)
}

// policyDigest returns the digest in the name of a policy file.
func policyDigest(name string) (id.Hash, bool) {
	if len(name) != len(PolicyFile(id.Hash{})) {
		return id.Hash{}, false
	}
	digest, err := id.ParseHash(name[len("policies/") : len(name)-len(".json")])
	return digest, err == nil && name == PolicyFile(digest)
}

// digest returns the SHA-256 of a file.
func (m *member) digest() (id.Hash, error) {
	r, err := m.open()
	if err != nil {
		return id.Hash{}, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return id.Hash{}, err
	}
	return id.Hash(sum.Sum(nil)), nil
}

// readSmall reads a file of at most limit bytes.
func (a *archive) readSmall(name string, limit int64) ([]byte, error) {
	f := a.byName[name]
	if f.size > limit {
		return nil, fmt.Errorf("%s: too large: %w", name, verify.ErrMalformed)
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// lines yields the lines of a file without their line ends. Each is valid until the next one.
func (a *archive) lines(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r, err := a.byName[name].open()
		if err != nil {
			yield(nil, err)
			return
		}
		in := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		for {
			part, err := in.ReadSlice('\n')
			switch {
			case errors.Is(err, io.EOF) && len(line)+len(part) == 0:
				return
			case err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF):
				yield(nil, err)
				return
			case errors.Is(err, io.EOF):
				yield(nil, fmt.Errorf("a line without an end: %w", verify.ErrMalformed))
				return
			case len(line)+len(part) > MaxLine || err == nil && len(line)+len(part) == 1:
				yield(nil, fmt.Errorf("length of a line: %w", verify.ErrMalformed))
				return
			}
			line = append(line, part...)
			if err == nil {
				if !yield(line[:len(line)-1], nil) {
					return
				}
				line = line[:0]
			}
		}
	}
}
