// An OpenID provider as its library's defaults make it: email is in UserInfo, not in the ID token of the code flow.
// Arguments: client id, client secret and redirect URI. It prints its issuer and ends with its standard input.
import http from 'node:http';
import * as oidc from 'oidc-provider';

const [client_id, client_secret, redirect_uri] = process.argv.slice(2);
const server = http.createServer().listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new oidc.Provider(issuer, {
    clients: [{ client_id, client_secret, redirect_uris: [redirect_uri], application_type: 'web' }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    // The login is a person's name; that of unverified people begins with "un".
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, name: id, email: `${id}@acme.example`, email_verified: !id.startsWith('un') }),
    }),
    cookies: { keys: ['for tests'] },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
process.stdin.on('end', () => process.exit(0)).resume();
