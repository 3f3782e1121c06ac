package main

import (
	"os"
	"runtime"
)

// leastThreads is for machines with one processor, because one thread makes requests wait for other work. A merge of
// tables runs for 10 ms before the runtime stops it, and a sync of the disk may keep the thread as long. The
// operating system divides the processor among two threads in shorter turns.
const leastThreads = 2

// setLeastThreads lets at least two threads run Go code, once, at the start. GOMAXPROCS of the environment wins. It must be called before
// others read runtime.GOMAXPROCS. Where it changes the number, later limits of a container have no effect.
func setLeastThreads() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastThreads {
		runtime.GOMAXPROCS(leastThreads)
	}
}
