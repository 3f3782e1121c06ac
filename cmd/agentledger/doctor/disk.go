package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/operate/status"
)

const (
	probeSyncs  = 32
	syncBytes   = 4096
	longestSync = 3 * time.Second // of all syncs together

	// Even the fastest disk needs longer than this to make bytes durable. A faster sync went to memory, of the machine or of
	// a controller, whose battery the operator must know about.
	implausible = 20 * time.Microsecond
	slow        = 50 * time.Millisecond
)

// checkDisks measures the volumes of the data directory and of the anchors.
func checkDisks(ctx context.Context, c config.Serve) (found []Finding) {
	folders := []struct{ name, path string }{{"data directory", c.Data}, {"anchors", c.AnchorsDir()}}
	for _, folder := range folders {
		path := nearestFolder(folder.path)
		times, err := measureSyncs(ctx, path)
		if err == nil {
			found = append(found, judgeSyncs(folder.name, volumeKind(path), times))
		} else {
			found = append(found, judgeSyncError(folder.name, path, err, c.ReadOnly))
		}
		if free, size, err := status.MeasureVolume(path); err == nil {
			found = append(found, judgeRoom(folder.name, free, size))
		}
	}
	return append(found, judgePlaces(c.Data, c.AnchorsDir())...)
}

// nearestFolder returns the folder or its nearest existing parent. A first start creates the others.
func nearestFolder(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// measureSyncs writes a file in the folder repeatedly, syncs it each time, and removes it.
func measureSyncs(ctx context.Context, dir string) (times []time.Duration, err error) {
	f, err := durable.NewTemporary(filepath.Join(dir, "sync"), ".agentledger-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Discard()) }()
	for began := time.Now(); len(times) < probeSyncs && time.Since(began) < longestSync && ctx.Err() == nil; {
		if _, err := f.WriteAt(make([]byte, syncBytes), int64(len(times)*syncBytes)); err != nil {
			return nil, err
		}
		before := time.Now()
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(before))
	}
	return times, nil
}

func judgeSyncError(name, path string, err error, readOnly bool) Finding {
	if errors.Is(err, fs.ErrPermission) {
		return attend("give the folder to the user of the service, or make it for that user",
			"%s: %s can't be written by this user", name, path)
	}
	if readOnly {
		return advise("the service is to be read-only, so it goes on", "%s: %v", name, err)
	}
	return attend("docs/runbooks/integrity.md: AgentledgerReadOnlyMode", "%s: %v", name, err)
}

// judgeSyncs judges whether a sync makes data durable, as far as that is visible from outside.
func judgeSyncs(name, kind string, times []time.Duration) Finding {
	sorted := slices.Sorted(slices.Values(times))
	if len(sorted) == 0 {
		return attend("look at the disk", "%s: no sync ended", name)
	}
	median, longest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	measured := fmt.Sprintf("%s: a sync takes %v, %v at most (%s)", name, median.Round(time.Microsecond),
		longest.Round(time.Microsecond), kind)
	switch {
	case kind == "tmpfs" || kind == "ramfs":
		return attend("put it on a disk", "%s: it is in memory (%s) and is lost when the machine stops", name, kind)
	case median < implausible:
		return attend("find out what confirms writes before they are durable: a cache without battery, a hypervisor, "+
			"a file system that is mounted without barriers", "%s: no disk is that fast", measured)
	case median > slow:
		return advise("look for another process that keeps the disk busy, or use a faster disk",
			"%s: events wait for it", measured)
	case kind == "overlay":
		return advise("put it on its own volume",
			"%s: it is in the container's own layer and is removed with the container", measured)
	case kind == "nfs":
		return advise("use a local disk: a network file system may confirm writes early and lose locks", "%s", measured)
	}
	return good("%s", measured)
}

func judgeRoom(name string, free, size uint64) Finding {
	share := float64(free) / float64(max(size, 1))
	summary := fmt.Sprintf("%s: %.1f GiB free of %.1f", name, float64(free)/(1<<30), float64(size)/(1<<30))
	if share < status.LowShare {
		return attend("free space, or make the volume larger: a full one ends the process", "%s", summary)
	}
	return good("%s", summary)
}

// judgePlaces advises to keep the anchors on another volume, so that a rollback of the store does not affect them.
func judgePlaces(data, anchors string) []Finding {
	a, errData := os.Stat(nearestFolder(data))
	b, errAnchors := os.Stat(nearestFolder(anchors))
	if errData != nil || errAnchors != nil {
		return nil
	}
	first, known := deviceOf(a)
	if second, alsoKnown := deviceOf(b); known && alsoKnown && first == second {
		return []Finding{advise("set --anchors to a folder on another volume",
			"the anchors are on the volume of the store: a rollback of that volume would not be detected")}
	}
	return nil
}
