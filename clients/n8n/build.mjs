// Makes dist/: the compiled node and credential, and one file bundled from clients/typescript.
//
// A community node has no run-time dependency, and canonical JSON has one implementation in JavaScript.
// So esbuild bundles what ledger.mjs takes from clients/typescript; all other files are compiled one by one.
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const folder = 'nodes/Agentledger';
process.chdir(here);
rmSync('dist', { recursive: true, force: true });
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc'], { stdio: 'inherit' });
await build({
	entryPoints: [`${folder}/ledger.mjs`],
	outfile: `dist/${folder}/ledger.cjs`,
	bundle: true,
	platform: 'node',
	format: 'cjs',
	target: 'node20',
});
for (const file of ['agentledger.svg', 'Agentledger.node.json']) {
	cpSync(`${folder}/${file}`, `dist/${folder}/${file}`);
}
