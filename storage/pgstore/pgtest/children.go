package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// status returns the state and parent of a process, from /proc/PID/stat (proc(5)).
func status(pid int) (state string, parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // after the name
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	state, _, ok := status(pid)
	return ok && state != "Z" && state != "X"
}

// childrenOf lists the child processes of a process.
func childrenOf(parent int) (children []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if _, above, ok := status(pid); ok && above == parent {
			children = append(children, pid)
		}
	}
	return children
}
