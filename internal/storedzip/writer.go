package storedzip

import (
	"fmt"
	"hash/crc32"
	"io"
)

// Writer writes a ZIP file. It must not be used concurrently, nor after an error.
type Writer struct {
	to      io.Writer
	written int64
	files   []File
	open    bool // the last file takes content
}

// NewWriter returns a Writer to w, which should be buffered: Writer does not buffer.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Create ends the current file and begins another. Its content is what is written to the result before the next call of
// Create or Close. Errors wrap ErrMalformed or ErrTooLarge, or come from the underlying writer.
func (w *Writer) Create(name string) (io.Writer, error) {
	if err := w.endFile(); err != nil {
		return nil, err
	}
	if !validName(name) {
		return nil, fmt.Errorf("begin file %.40q of a ZIP file: %w", name, ErrMalformed)
	}
	if len(w.files) == MaxFiles {
		return nil, fmt.Errorf("begin file of a ZIP file: %w", ErrTooLarge)
	}
	f := File{Name: name, Offset: w.written + localLen + int64(len(name))}
	w.files, w.open = append(w.files, f), true
	return (*content)(w), w.writeBytes(f.appendLocal(nil))
}

// Close writes the central directory. It does not close the underlying writer.
func (w *Writer) Close() error {
	if err := w.endFile(); err != nil {
		return err
	}
	var directory []byte
	for i := range w.files {
		directory = w.files[i].appendCentral(directory)
	}
	return w.writeBytes(appendEnd(directory, len(w.files), len(directory), w.written))
}

func (w *Writer) endFile() error {
	if !w.open {
		return nil
	}
	w.open = false
	return w.writeBytes(w.files[len(w.files)-1].appendDescriptor(nil))
}

func (w *Writer) writeBytes(b []byte) error {
	if w.written+int64(len(b)) > MaxBytes {
		return fmt.Errorf("write ZIP file: %w", ErrTooLarge)
	}
	n, err := w.to.Write(b)
	w.written += int64(n)
	return err
}

// content is a Writer as the io.Writer of its current file.
type content Writer

// Write implements io.Writer.
func (c *content) Write(b []byte) (int, error) {
	w := (*Writer)(c)
	if err := w.writeBytes(b); err != nil {
		return 0, err
	}
	f := &w.files[len(w.files)-1]
	f.CRC = crc32.Update(f.CRC, crc32.IEEETable, b)
	f.Size += int64(len(b))
	return len(b), nil
}
