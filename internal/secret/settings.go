package secret

import (
	"fmt"
	"io/fs"
	"os"
)

// everybodyWrites is the mode bit that lets every user change a file.
const everybodyWrites fs.FileMode = 0o002

// CheckSettings returns an error if every user can change a settings file: whoever writes it decides which keys,
// witnesses and servers the program trusts. Pipes and devices are not checked. On Windows it returns nil, because there
// the mode of a file is derived only from its read-only attribute.
func CheckSettings(info fs.FileInfo) error {
	if !ModesAreReal || !info.Mode().IsRegular() || info.Mode()&everybodyWrites == 0 {
		return nil
	}
	mode := info.Mode().Perm()
	return fmt.Errorf("mode is %04o, so every user can change it: set it to %04o", mode, mode&^everybodyWrites)
}

// OpenSettings opens a settings file that passes CheckSettings.
func OpenSettings(path string) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := CheckOpenSettings(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// CheckOpenSettings is CheckSettings for an open file.
func CheckOpenSettings(f *os.File) error {
	info, err := f.Stat()
	if err == nil {
		err = CheckSettings(info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// maxSettings bounds the size of a settings file, in bytes.
const maxSettings = 16 << 20

// ReadSettings returns the content of a settings file that passes CheckSettings.
func ReadSettings(path string) ([]byte, error) {
	f, err := OpenSettings(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, path, maxSettings)
}
