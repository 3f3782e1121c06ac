package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressInterval is the time between redraws of the bar.
const progressInterval = 200 * time.Millisecond

// newProgressBar returns a bar for that many items, or -1 if the number is unknown. It is shown only on a terminal.
func newProgressBar(w io.Writer, total int64, doing, things string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(isTerminal(w)),
		progressbar.OptionSetDescription(doing),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(things),
		progressbar.OptionThrottle(progressInterval),
		progressbar.OptionClearOnFinish(),
	)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// countLines returns how many lines sourceLines will yield for a file, or -1 if the file can't be read twice.
func countLines(f io.Reader, skip, limit uint64) (int64, error) {
	seeker, ok := f.(io.ReadSeeker)
	if !ok {
		return -1, nil
	}
	if _, err := seeker.Seek(0, io.SeekCurrent); err != nil {
		return -1, nil // a pipe
	}
	count := int64(0)
	for _, err := range sourceLines(seeker, skip, limit) {
		if err != nil {
			return 0, err
		}
		count++
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return count, err
}
