package enginetest

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CrashDisk is a file system in memory that can lose unsynced data. CrashClone may be called at any time, concurrently with
// all other methods. An image contains all synced data, and as much of the rest as the caller asks for.
//
// It is a vfs.MemFS without its deadlock: MemFS acquires the same read lock twice in ReuseForWrite and in Lock. An image
// that is requested between the two waits for the first, and the second waits for the image.
type CrashDisk struct {
	*vfs.MemFS
	images sync.RWMutex // held for reading by these two methods, for writing while an image is taken
}

// NewCrashDisk returns an empty disk.
func NewCrashDisk() *CrashDisk { return &CrashDisk{MemFS: vfs.NewCrashableMem()} }

// CrashClone returns an image of the disk as a crash at this moment would leave it.
func (d *CrashDisk) CrashClone(config vfs.CrashCloneCfg) *vfs.MemFS {
	d.images.Lock()
	defer d.images.Unlock()
	return d.MemFS.CrashClone(config)
}

// ReuseForWrite implements vfs.FS.
func (d *CrashDisk) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.images.RLock()
	defer d.images.RUnlock()
	return d.MemFS.ReuseForWrite(oldName, newName, category)
}

// Lock implements vfs.FS.
func (d *CrashDisk) Lock(name string) (io.Closer, error) {
	d.images.RLock()
	defer d.images.RUnlock()
	return d.MemFS.Lock(name)
}
