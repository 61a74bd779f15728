mod question;
