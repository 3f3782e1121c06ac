// All test files in one process, because each process would load n8n-workflow again.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';

for (const file of readdirSync(__dirname).filter((name) => name.endsWith('.test.js')).sort()) {
	describe(file, () => {
		require(join(__dirname, file));
	});
}
