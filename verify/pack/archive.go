package pack

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/storedzip"
	"github.com/agentledger/agentledger/verify"
)

// source is the reader of a pack. It remembers its first error, so that a file that can't be read is told from
// a pack that is wrong.
type source struct {
	r   io.ReaderAt
	err error
}

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(b []byte, offset int64) (int, error) {
	n, err := s.r.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	return n, err
}

// archive is the files of a pack.
type archive struct {
	source *source
	files  []storedzip.File
	byName map[string]*storedzip.File
}

// openArchive reads the ZIP file and checks the names in it.
func openArchive(s *source, size int64) (*archive, error) {
	files, err := storedzip.Read(s, size)
	if errors.Is(err, storedzip.ErrMalformed) {
		err = fmt.Errorf("%w: %v", verify.ErrMalformed, err)
	}
	if err != nil {
		return nil, err
	}
	a := &archive{source: s, files: files, byName: make(map[string]*storedzip.File, len(files))}
	for i := range files {
		a.byName[files[i].Name] = &files[i]
	}
	if len(a.byName) != len(files) || !a.hasNames() {
		return nil, fmt.Errorf("names of the files: %w", verify.ErrMalformed)
	}
	return a, nil
}

// hasNames reports whether the files are those of a pack, in their order.
func (a *archive) hasNames() bool {
	policies := len(a.files) - len(filesBefore) - len(filesBehind)
	if policies < 0 || policies > MaxPolicies {
		return false
	}
	before := ""
	for i := range a.files {
		name, behind := a.files[i].Name, i-len(filesBefore)-policies
		switch {
		case i < len(filesBefore):
			if name != filesBefore[i] {
				return false
			}
		case behind >= 0:
			if name != filesBehind[behind] {
				return false
			}
		default:
			if _, ok := policyDigest(name); !ok || name <= before {
				return false
			}
			before = name
		}
	}
	return true
}

// policyDigest returns the digest that the name of a policy's file names.
func policyDigest(name string) (id.Hash, bool) {
	if len(name) != len(PolicyFile(id.Hash{})) {
		return id.Hash{}, false
	}
	digest, err := id.ParseHash(name[len("policies/") : len(name)-len(".json")])
	return digest, err == nil && name == PolicyFile(digest)
}

func (a *archive) open(name string) *io.SectionReader {
	f := a.byName[name]
	return io.NewSectionReader(a.source, f.Offset, f.Size)
}

// digest returns the SHA-256 of a file, after its CRC was compared.
func (a *archive) digest(f *storedzip.File) (id.Hash, error) {
	sum, crc := sha256.New(), crc32.NewIEEE()
	if _, err := io.Copy(io.MultiWriter(sum, crc), a.open(f.Name)); err != nil {
		return id.Hash{}, err
	}
	if crc.Sum32() != f.CRC {
		return id.Hash{}, fmt.Errorf("CRC: %w", verify.ErrMismatch)
	}
	return id.Hash(sum.Sum(nil)), nil
}

// readSmall reads a file of at most limit bytes.
func (a *archive) readSmall(name string, limit int64) ([]byte, error) {
	if a.byName[name].Size > limit {
		return nil, fmt.Errorf("%s: too large: %w", name, verify.ErrMalformed)
	}
	return io.ReadAll(a.open(name))
}

// lines yields the lines of a file without their ends. They are valid until the next one.
func (a *archive) lines(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(a.open(name), 64<<10)
		var line []byte
		for {
			part, err := in.ReadSlice('\n')
			switch {
			case errors.Is(err, io.EOF) && len(line)+len(part) == 0:
				return
			case err != nil && !errors.Is(err, bufio.ErrBufferFull):
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
