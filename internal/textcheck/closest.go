package textcheck

// Closest returns the known name that a misspelt name is most likely meant to be, or "" if none is close. It allows one
// wrong, missing, additional or exchanged character, and two in names of more than five characters.
func Closest(name string, known []string) string {
	const maxName = 64 // bounds the work for a name that is no setting anyway
	closest, best := "", 2
	if len(name) > 5 {
		best = 3
	}
	for _, k := range known {
		if len(name) > maxName {
			break
		}
		if d := distance(name, k); d < best {
			closest, best = k, d
		}
	}
	return closest
}

// distance counts the changes of single bytes, and exchanges of neighbours, that turn a into b (optimal string
// alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
