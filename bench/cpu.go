package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc/PID/stat: USER_HZ is 100 wherever Linux runs.
const clockTick = time.Second / 100

// spent returns the processor time of processes and of their children, including ended ones, from /proc/PID/stat (proc(5)).
// It returns 0 on systems without it.
func spent(pids ...int) (total time.Duration) {
	selected := make(map[int]bool, len(pids))
	for _, pid := range pids {
		selected[pid] = true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		stat, readErr := os.ReadFile(dir + "/stat")
		if err != nil || readErr != nil {
			continue
		}
		// After the name: state, parent, … and from the twelfth on utime, stime, cutime, cstime.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 15 {
			continue
		}
		times := fields[11:13]
		switch parent, _ := strconv.Atoi(fields[1]); {
		case selected[pid]:
			times = fields[11:15]
		case !selected[parent]:
			continue
		}
		for _, t := range times {
			n, _ := strconv.ParseInt(t, 10, 64)
			total += time.Duration(n) * clockTick
		}
	}
	return total
}

// pid returns the process ID of the server, or 0 if it is unknown.
func (d *database) pid() int {
	if d == nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// meter measures the processor time of some work, regardless of what else the machine does: the time of this process or a
// server, and of the database, if there is one.
type meter struct {
	pid, database        int
	began, databaseBegan time.Duration
}

func (s *suite) meter(pid int) meter {
	m := meter{pid: pid, database: s.pg.pid(), began: spent(pid)}
	if m.database != 0 {
		m.databaseBegan = spent(m.database)
	}
	return m
}

// each returns the time per operation of n operations: the total, and the database's share.
func (m meter) each(n int) []value {
	program, database := spent(m.pid)-m.began, time.Duration(0)
	if m.database != 0 {
		database = spent(m.database) - m.databaseBegan
	}
	per := func(t time.Duration) float64 { return float64(t.Microseconds()) / float64(n) }
	values := []value{{per(program + database), "cpu-µs/event"}}
	if m.database != 0 {
		values = append(values, value{per(database), "db-cpu-µs/event"})
	}
	return values
}
