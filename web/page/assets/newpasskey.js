// The page on which the browser makes a passkey, with options that the service gave.

import "./passkeyform.js";
import { hasPasskeys } from "./passkey.js";

if (!hasPasskeys()) document.getElementById("outcome").textContent = "This browser can't make passkeys for this page.";
document.documentElement.dataset.done = "yes";
