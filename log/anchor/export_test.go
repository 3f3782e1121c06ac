package anchor

// LongestJournal returns how many notes a journal of so many origins has at most.
func LongestJournal(origins int) int { return maxNotes(origins) }
