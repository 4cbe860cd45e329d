// A browser lets no page that is a file read the index that a search needs.
if (location.protocol === 'file:') document.documentElement.classList.add('from-file');
