package main

import (
	"os"
	"runtime"
)

// leastThreads is for machines with one processor, where requests would wait for other work on the same thread. A merge of
// tables runs for 10 ms before the runtime preempts it, and a sync of the disk may block the thread as long. The operating
// system switches between two threads more often.
const leastThreads = 2

// setLeastThreads lets at least two threads run Go code, unless GOMAXPROCS is set. It must be called before anything reads
// runtime.GOMAXPROCS. If it changes the number, later limits of a container have no effect.
func setLeastThreads() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastThreads {
		runtime.GOMAXPROCS(leastThreads)
	}
}
